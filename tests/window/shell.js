// Updates the generated parts of `index.html`: the list of modules, which lets the engine load them all at once, and the icon
// sprite, which avoids further requests. `node tests/window/shell.js` writes both.

import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const UI = fileURLToPath(new URL("../../ui/", import.meta.url));
const LINK = /^ {4}<link rel="modulepreload" href="[^"]+">\n/gm;
const SPRITE = /^ {4}<svg class="sprite">[^]*?<\/svg>\n/m;

/** Returns a module and its imports, in order. */
function imported(file, seen = new Set()) {
  if (seen.has(file)) return seen;
  seen.add(file);
  for (const [, path] of readFileSync(join(UI, file), "utf8").matchAll(/^(?:import|export) [^;]*?from "(\.[^"]+)"/gm)) imported(normalize(join(dirname(file), path)), seen);
  return seen;
}

export const modules = () => [...imported("app.js")].slice(1);

/** The sprite's symbols, one per line. */
export const symbols = () => readFileSync(join(UI, "vendor/lucide/sprite.svg"), "utf8").split("\n").filter((line) => line.startsWith("<symbol"));

export const page = () => readFileSync(join(UI, "index.html"), "utf8");

/** Returns a page with the sprite at the beginning of its body. */
export const withSprite = (text) => text.replace(SPRITE, "").replace("  <body>\n", `  <body>\n    <svg class="sprite">\n${symbols().join("\n")}\n    </svg>\n`);

/** Returns the expected content of `index.html`. */
export function wanted() {
  const links = modules().map((file) => `    <link rel="modulepreload" href="${file}">\n`).join("");
  return withSprite(page().replace(LINK, "").replace("    <script type=", `${links}    <script type=`));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(join(UI, "index.html"), wanted());
