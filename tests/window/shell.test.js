import assert from "node:assert/strict";
import { test } from "node:test";
import { modules, page, symbols, wanted } from "./shell.js";

test("index.html has the modules and the sprite; `node tests/window/shell.js` updates both", () => {
  assert.ok(modules().includes("vendor/lit-html/lit-html.js"));
  assert.ok(symbols().length > 20);
  assert.equal(page(), wanted());
});
