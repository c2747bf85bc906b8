// Third-party files in `ui/vendor` are unmodified and come with their licences.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { test } from "node:test";

const UI = new URL("../../ui/", import.meta.url);
const VENDOR = new URL("vendor/", UI);
const PUBLISHED = new URL("../../target/npm/node_modules/", import.meta.url);

/** Returns every file below a folder. */
const files = (folder, below = "") =>
  readdirSync(new URL(below, folder)).flatMap((name) => (statSync(new URL(below + name, folder)).isDirectory() ? files(folder, `${below}${name}/`) : [below + name]));

test("vendored files of lit-html equal the pinned package and include its licence", () => {
  const found = files(VENDOR).filter((file) => file.startsWith("lit-html/"));
  assert.ok(found.includes("lit-html/LICENSE") && found.includes("lit-html/lit-html.js"), String(found));
  for (const file of found) {
    const text = readFileSync(new URL(file, VENDOR), "utf8");
    assert.equal(text, readFileSync(new URL(file, PUBLISHED), "utf8"), file);
    assert.match(text, file.endsWith("LICENSE") ? /^BSD 3-Clause License/ : /SPDX-License-Identifier: BSD-3-Clause/, file);
  }
});

test("the typeface is the published one, and icons and typeface have their licences", () => {
  assert.deepEqual(files(VENDOR).filter((file) => !file.startsWith("lit-html/")), ["inter/LICENSE", "inter/inter-latin-wght-normal.woff2", "lucide/LICENSE", "lucide/sprite.svg"]);
  const hash = createHash("sha256").update(readFileSync(new URL("inter/inter-latin-wght-normal.woff2", VENDOR))).digest("hex");
  assert.equal(hash, "3100e775e8616cd2611beecfa23a4263d7037586789b43f035236a2e6fbd4c62", "of @fontsource-variable/inter 5.3.0");
  assert.match(readFileSync(new URL("inter/LICENSE", VENDOR), "utf8"), /SIL OPEN FONT LICENSE Version 1.1/);
  assert.match(readFileSync(new URL("lucide/LICENSE", VENDOR), "utf8"), /^ISC License/);
});

test("the sprite has the icons that the window names, and no others", () => {
  const sprite = readFileSync(new URL("lucide/sprite.svg", VENDOR), "utf8");
  const drawn = [...sprite.matchAll(/<symbol id="i-([a-z0-9-]+)"/g)].map(([, id]) => id);
  const own = files(UI).filter((name) => /\.(?:js|html)$/.test(name) && !name.startsWith("vendor/")).map((name) => readFileSync(new URL(name, UI), "utf8")).join("\n");
  const unused = drawn.filter((id) => !own.includes(`"${id}"`) && !own.includes(`href="#i-${id}"`));
  assert.deepEqual(unused, []);
  const named = [...own.matchAll(/(?:\bicon\(|icon: |emptyState\(|iconButton\([^,]+, )"([a-z0-9-]+)"|href="#i-([a-z0-9-]+)"/g)].map(([, a, b]) => a ?? b);
  assert.ok(named.length > 20, String(named));
  assert.deepEqual(named.filter((id) => !drawn.includes(id)), []);
  assert.doesNotMatch(sprite, /<script|href=|on[a-z]+=/i);
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
