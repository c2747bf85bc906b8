import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { FRAME } from "../../ui/texts/frame.js";
import { page } from "./shell.js";

const UI = new URL("../../ui/", import.meta.url);
/** Files of the window's code, without its texts. */
const CODE = readdirSync(UI, { recursive: true }).filter((file) => file.endsWith(".js") && !/^(texts|vendor)\//.test(file));

/** Returns the code of a file without comments and errors for developers. */
const code = (file) => readFileSync(new URL(file, UI), "utf8").replace(/\/\*[^]*?\*\//g, "").replace(/(^|\s)\/\/.*$/gm, "").replace(/throw new Error\(`.*/g, "");

/** Removes the values from templates, from the inside out. */
function withoutValues(text) {
  for (let before = ""; before !== text; ) [before, text] = [text, text.replace(/\$\{[^{}`]*\}/g, "").replace(/\{[^{}`$]*\}/g, "")];
  return text;
}

/** Returns the words for people in code: in markup, in attributes that are read aloud, and sentences in strings. */
function wordsIn(code) {
  const text = withoutValues(code);
  const markup = [...text.matchAll(/<[a-z][^<>`]*>([^<>`$={}();]*[A-Za-z]{2}[^<>`$={}();]*)</g)].map(([, words]) => words.trim());
  const read = [...text.matchAll(/(?:aria-label|title|placeholder)="([^"$]*[A-Za-z]{2}[^"$]*)"/g)].map(([, words]) => words);
  const sentences = [...text.matchAll(/(?<![a-z])`([^`\n<>;=()]*[A-Za-z]{2,} [a-z]{2,}[^`\n<>;=()]*)`/g)].map(([, words]) => words);
  const strings = [...text.matchAll(/"([A-Z][a-z]+(?: [A-Za-z,]+)+[.:!?\u2026]?)"/g)].map(([, words]) => words);
  return [...markup, ...read, ...sentences, ...strings].filter((words) => words && !/^[a-z0-9.*-]+\.example(\.com)?$/.test(words) && words !== "api.example.com");
}

test("all texts of the window are in ui/texts", () => {
  assert.ok(CODE.length > 60);
  const found = CODE.flatMap((file) => wordsIn(code(file)).map((words) => `${file}: ${words}`));
  assert.deepEqual(found, []);
  const planted = ["html`<p>${one}</p><b>Lock down</b>`", 'html`<a title="Lock down">`', "say(`lock down ${one}`)", 'say("Locked down.")', "html`<button>Undo</button>`"];
  assert.deepEqual(planted.filter((one) => wordsIn(one).length === 0), []);
});

test("the texts before the first drawing are those of the frame", () => {
  assert.match(page(), new RegExp(`id="skip" href="#page">${FRAME.skip}<`));
  assert.match(page(), new RegExp(`id="loading">${FRAME.loading}<`));
  assert.match(page(), new RegExp(`<nav class="frame" aria-label="${FRAME.pagesLabel}">`));
});

/** Returns the names that code uses from a file: by name, later by name, or through an import of the whole file. */
function importedFrom(file, code) {
  const path = `"[./a-z_]*\\b${file.split("/").pop().replace(".", "\\.")}"`;
  const from = `from ${path}`;
  const byName = [...code.matchAll(new RegExp(`import \\{([^}]*)\\} ${from}`, "g"))].flatMap(([, names]) => names.split(",").map((name) => name.trim().split(" as ")[0]));
  const later = [...code.matchAll(new RegExp(`const \\{([^}]*)\\} = await import\\(${path}\\)`, "g"))].flatMap(([, names]) => names.split(",").map((name) => name.trim()));
  const whole = [...code.matchAll(new RegExp(`import \\* as (\\w+) ${from}`, "g"))].flatMap(([, as]) => [...code.replace(/^import .*$/gm, "").matchAll(new RegExp(`\\b${as}\\.(\\w+)`, "g"))].map(([, name]) => name));
  return [...byName, ...later, ...whole];
}

test("every export of the window is used", () => {
  const files = readdirSync(UI, { recursive: true }).filter((file) => file.endsWith(".js") && !file.startsWith("vendor/"));
  const all = files.map((file) => code(file));
  const unused = files.flatMap((file, at) => {
    const names = [...all[at].matchAll(/export (?:async )?(?:function|const|let|class) (\w+)/g)].map(([, name]) => name);
    const used = new Set(all.flatMap((text) => importedFrom(file, text)));
    return names.filter((name) => !used.has(name)).map((name) => `${file}: ${name}`);
  });
  assert.deepEqual(unused, []);
  assert.deepEqual(importedFrom("words.js", 'import * as words from "./words.js";\nimport { ago as a, list } from "../words.js";\nwords.exact(1)'), ["ago", "list", "exact"]);
  assert.deepEqual(importedFrom("words.js", 'const { ago, list } = await import("./words.js");'), ["ago", "list"]);
});
