// What `index.html` repeats: the modules of the page, so that the engine loads them all at once, and the sprite, so that icons are
// drawn without further requests. `node tests/window/shell.js` writes both.

import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const UI = fileURLToPath(new URL("../../ui/", import.meta.url));
const LINK = /^ {4}<link rel="modulepreload" href="[^"]+">\n/gm;
const SPRITE = /^ {4}<svg class="sprite">[^]*?<\/svg>\n/m;

/** Returns a module and those that it imports, in order. */
function imported(file, seen = new Set()) {
  if (seen.has(file)) return seen;
  seen.add(file);
  for (const [, path] of readFileSync(join(UI, file), "utf8").matchAll(/^(?:import|export) [^;]*?from "(\.[^"]+)"/gm)) imported(normalize(join(dirname(file), path)), seen);
  return seen;
}

export const modules = () => [...imported("app.js")].slice(1);

/** Returns the symbols of the sprite, one on each line. */
export const symbols = () => readFileSync(join(UI, "vendor/lucide/sprite.svg"), "utf8").split("\n").filter((line) => line.startsWith("<symbol"));

export const page = () => readFileSync(join(UI, "index.html"), "utf8");

/** Returns a page with the sprite at the beginning of its body. */
export const withSprite = (text) => text.replace(SPRITE, "").replace("  <body>\n", `  <body>\n    <svg class="sprite">\n${symbols().join("\n")}\n    </svg>\n`);

/** Returns `index.html` as it has to be. */
export function wanted() {
  const links = modules().map((file) => `    <link rel="modulepreload" href="${file}">\n`).join("");
  return withSprite(page().replace(LINK, "").replace("    <script type=", `${links}    <script type=`));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(join(UI, "index.html"), wanted());
