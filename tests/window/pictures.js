// Saves pictures of every page: `node tests/window/pictures.js FOLDER`. With `--guide` before the folder, saves the
// documentation's pictures instead, without the component sheet.

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Browser } from "./browser.js";
import { key } from "./steps.js";

export const PAGES = ["home", "activity", "agents", "permissions", "servers", "rules", "settings"];
const forGuide = process.argv[2] === "--guide";
const folder = process.argv[forGuide ? 3 : 2];
// Text that imitates markup is only for tests.
const PLAIN = `
  const plain = (one) => typeof one === "string" ? one.replace(/<img[^>]*>|<\\/?\\w+>/g, "").trim() : Array.isArray(one) ? one.map(plain)
    : one && typeof one === "object" ? Object.fromEntries(Object.entries(one).map(([key, value]) => [key, plain(value)])) : one;
  for (const key of Object.keys(made)) if (key !== "listeners") made[key] = plain(made[key]);
  made.change(); return true;`;
/** Names, sizes and scales of the pictures. */
const LOOKS = forGuide
  ? [["", { width: 1000, height: 700 }, 1], ["-150", { width: 1500, height: 1050 }, 1.5]]
  : [["", { width: 1280, height: 800 }, 1], ["-200", { width: 640, height: 800 }, 1]];
if (folder) {
  await mkdir(folder, { recursive: true });
  for (const [name, size, scale] of LOOKS) {
    const browser = await Browser.open({ ...size, isComposited: true });
    const save = async (page, theme) => {
      await browser.run(`document.documentElement.style.zoom = "${scale}"; return true`);
      await browser.settled();
      const look = forGuide ? (theme === "dark" ? "-dark" : "") : `-${theme}`;
      await writeFile(join(folder, `${page}${look}${name}.png`), await browser.picture());
    };
    for (const theme of ["light", "dark"]) {
      for (const page of PAGES) {
        await browser.go(page, { theme });
        if (forGuide) {
          await browser.run(PLAIN);
          await browser.until(`!document.body.innerText.includes("<img")`);
        }
        await save(page, theme);
      }
      if (forGuide) {
        await browser.go("settings", { theme, isManaged: true });
        await browser.press(key("organization"));
        await save("settings-managed", theme);
      } else {
        await browser.sheet({ theme });
        await save("components", theme);
      }
    }
    await browser.close();
  }
}
