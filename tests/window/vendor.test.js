// Third-party files in `ui/vendor` are unmodified and have their licence.

import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { test } from "node:test";

const VENDOR = new URL("../../ui/vendor/", import.meta.url);
const PUBLISHED = new URL("../../target/npm/node_modules/", import.meta.url);

/** Returns every file below a folder. */
const files = (folder, below = "") =>
  readdirSync(new URL(below, folder)).flatMap((name) => (statSync(new URL(below + name, folder)).isDirectory() ? files(folder, `${below}${name}/`) : [below + name]));

test("vendored files equal the pinned packages and include their licences", () => {
  const found = files(VENDOR);
  assert.ok(found.includes("lit-html/LICENSE") && found.includes("lit-html/lit-html.js"), String(found));
  for (const file of found) {
    const text = readFileSync(new URL(file, VENDOR), "utf8");
    assert.equal(text, readFileSync(new URL(file, PUBLISHED), "utf8"), file);
    assert.match(text, file.endsWith("LICENSE") ? /^BSD 3-Clause License/ : /SPDX-License-Identifier: BSD-3-Clause/, file);
  }
});

test("only one file calls the app, and none turns text into markup", () => {
  const own = files(new URL("../../ui/", import.meta.url)).filter((name) => name.endsWith(".js") && !name.startsWith("vendor/"));
  assert.ok(own.length > 20, String(own));
  for (const file of own) {
    const text = readFileSync(new URL(`../../ui/${file}`, import.meta.url), "utf8");
    if (file !== "backend.js") assert.doesNotMatch(text, /__TAURI__/, file);
    assert.doesNotMatch(text, /innerHTML|outerHTML|insertAdjacent|unsafeHTML|document\.write|\beval\(|new Function/, file);
  }
});
