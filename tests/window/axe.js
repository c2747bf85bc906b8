// Accessibility check with every rule of axe, including best practices and rules that are off by default.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

const AXE = readFileSync(new URL("../../target/npm/node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

/** Checks that axe finds no problems on the page in its current state. */
export async function findsNothing(browser) {
  // Axe's frame measurement needs something that the page's content security policy forbids.
  await browser.run(`${AXE}; return true`);
  const found = await browser.wait(`
    const rules = Object.fromEntries(axe.getRules().map(({ ruleId }) => [ruleId, { enabled: true }]));
    axe.run(document, { resultTypes: ["violations"], rules }).then(
      ({ violations }) => done(violations.map(({ id, impact, nodes }) => [impact, id, nodes.map((one) => one.html).slice(0, 3)])),
      (problem) => done([["serious", String(problem), []]]))`);
  assert.deepEqual(found, []);
}
