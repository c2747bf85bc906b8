// Saves pictures of every page: `node tests/window/pictures.js FOLDER`. With `--guide` before the folder, saves those of
// the documentation.

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Browser } from "./browser.js";

export const PAGES = ["home", "sessions", "granted", "rules", "servers", "clients", "activity", "settings"];
const forGuide = process.argv[2] === "--guide";
const folder = process.argv[forGuide ? 3 : 2];
// Text that imitates markup is only for tests.
const PLAIN = `
  const plain = (one) => typeof one === "string" ? one.replace(/\\s*<[^>]*>/g, "") : Array.isArray(one) ? one.map(plain)
    : one && typeof one === "object" ? Object.fromEntries(Object.entries(one).map(([key, value]) => [key, plain(value)])) : one;
  for (const key of Object.keys(made)) if (key !== "listeners") made[key] = plain(made[key]);
  made.change(); return true;`;
const LOOKS = [["", { width: 1280, height: 800 }], ["-200", { width: 640, height: 800 }]];
const looks = forGuide ? [["", { width: 1000, height: 700 }]] : LOOKS;
if (folder) {
  await mkdir(folder, { recursive: true });
  for (const [name, size] of looks) {
    const browser = await Browser.open(size);
    for (const theme of forGuide ? ["light"] : ["light", "dark"]) {
      for (const page of PAGES) {
        await browser.go(page, { theme });
        if (forGuide) {
          await browser.run(PLAIN);
          await browser.until(`!document.body.innerText.includes("<img")`);
        }
        await writeFile(join(folder, forGuide ? `${page}.png` : `${page}-${theme}${name}.png`), await browser.picture());
      }
    }
    await browser.close();
  }
}
