// Lists the modules of the page in the order of their imports. `node tests/window/modules.js` writes the list into `index.html`, so
// that the engine loads them all at once, not one after the other.

import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const UI = fileURLToPath(new URL("../../ui/", import.meta.url));
const LINE = /^ {4}<link rel="modulepreload" href="([^"]+)">\n/gm;

/** Returns the modules that a module imports, and those that they import. */
function imported(file, seen = new Set()) {
  if (seen.has(file)) return seen;
  seen.add(file);
  for (const [, path] of readFileSync(join(UI, file), "utf8").matchAll(/^(?:import|export) [^;]*?from "(\.[^"]+)"/gm)) imported(normalize(join(dirname(file), path)), seen);
  return seen;
}

export const modules = () => [...imported("app.js")].slice(1);

/** Returns the modules that `index.html` loads beforehand. */
export const listed = () => [...readFileSync(join(UI, "index.html"), "utf8").matchAll(LINE)].map(([, file]) => file);

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const page = readFileSync(join(UI, "index.html"), "utf8").replace(LINE, "");
  const links = modules().map((file) => `    <link rel="modulepreload" href="${file}">\n`).join("");
  writeFileSync(join(UI, "index.html"), page.replace("    <script type=", `${links}    <script type=`));
}
