// Pictures of every page, for people to look at: `node tests/window/pictures.js FOLDER`.

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Browser } from "./browser.js";

export const PAGES = ["home", "sessions", "granted", "rules", "servers", "clients", "activity", "settings"];
const folder = process.argv[2];
if (folder) {
  await mkdir(folder, { recursive: true });
  for (const [name, size] of [["", { width: 1280, height: 800 }], ["-200", { width: 640, height: 800 }]]) {
    const browser = await Browser.open(size);
    for (const theme of ["light", "dark"]) {
      for (const page of PAGES) {
        await browser.go(page, { theme });
        await writeFile(join(folder, `${page}-${theme}${name}.png`), await browser.picture());
      }
    }
    await browser.close();
  }
}
