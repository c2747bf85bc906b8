import assert from "node:assert/strict";
import { test } from "node:test";
import { listed, modules } from "./modules.js";

test("the page loads all its modules at once; `node tests/window/modules.js` updates the list", () => {
  assert.ok(modules().includes("vendor/lit-html/lit-html.js"));
  assert.deepEqual(listed(), modules());
});
