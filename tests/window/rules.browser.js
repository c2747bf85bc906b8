// Rules: changing, ordering, trying on the audit log, and saving.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Browser } from "./browser.js";
import { key, steps } from "./steps.js";

/** @type {Browser} */
let browser;
before(async () => (browser = await Browser.open()));
after(() => browser.close());
const { called, press, says } = steps(() => browser);

test("rules are moved, changed, removed and added, and saved only after a trial", async () => {
  await browser.go("rules");
  await press("more:deny-secrets");
  await press("later:deny-secrets");
  await says("Changed, not saved.");
  await press("then:work");
  await press("then:work:escalate");
  await says("Asks about what it covers (was: Allows reading in the folder of this project.)");
  await press("more:ask-before-writing");
  await press("remove:ask-before-writing");
  await browser.until(`document.querySelector('${key("more:ask-before-writing")}') === null`);
  await press("add-rule");
  await browser.until(`document.querySelector('${key("draft-path")}') !== null`);
  await browser.run(`const path = document.querySelector('${key("draft-path")}'); path.value = "~/Documents"; path.dispatchEvent(new Event("input")); return true`);
  await says("Asks about read_text_file of filesystem in ~/Documents.");
  assert.equal(await browser.run(`document.querySelector('${key("save-rules")}').disabled`), true);
  await press("dry-run");
  await browser.until(`!document.querySelector('${key("save-rules")}').disabled`);
  await press("save-rules");
  await press("save-rules:yes");
  await browser.until(`made.calls.some(([name]) => name === "save_rules")`);
  const [{ text }] = await called("save_rules");
  const rules = JSON.parse(text).rules.map((rule) => [rule.name, rule.then, rule.if.paths?.within]);
  assert.deepEqual(rules, [["ask-filesystem-read-text-file", "escalate", "~/Documents"], ["work", "escalate", undefined], ["deny-secrets", "deny", undefined]]);
});

test("a rule is dragged to its place, and its hits, source and findings are shown", async () => {
  await browser.go("rules");
  await says("1,204 calls");
  await says("no annotated server or tool is named notes");
  const widths = await browser.run(`[...document.querySelectorAll("#page .hit-bar .fill")].map((one) => Number(one.getAttribute("width")))`);
  assert.deepEqual(widths, [3, 64, 3], "a few calls are visible");
  const names = () => browser.run(`[...document.querySelectorAll("#page .rules .name")].map((one) => one.innerText)`);
  await browser.drag(key("move:ask-before-writing"), key("move:deny-secrets"));
  await says("Changed, not saved.");
  assert.deepEqual(await names(), ["ask-before-writing", "deny-secrets", "work"]);
  await press("drop-rules");
  await browser.until(`document.querySelector('${key("drop-rules")}') === null`);
  assert.deepEqual(await names(), ["deny-secrets", "work", "ask-before-writing"]);
  await press("more:work");
  await press("source:work");
  await says('"roles": [');
});

test("rules are tried on the audit log before saving, and a call becomes a rule", async () => {
  await browser.go("activity/1479");
  await press("rule:1479");
  await browser.until(`location.hash === "#rules" && document.activeElement?.dataset.key === "draft-then"`);
  assert.equal(await browser.run(`document.querySelector('${key("save-rules")}').disabled`), true);
  await press("dry-run");
  await says("0 would have been looser and 4 stricter");
  await press("save-rules");
  assert.deepEqual(await called("save_rules"), []);
  await press("save-rules:yes");
  await browser.until(`made.calls.some(([name]) => name === "save_rules")`);
  const [{ text, before }] = await called("save_rules");
  assert.deepEqual(JSON.parse(text).rules.map(({ name }) => name), ["ask-filesystem-write-file", "deny-secrets", "work", "ask-before-writing"]);
  assert.deepEqual(JSON.parse(before).rules.map(({ name }) => name), ["deny-secrets", "work", "ask-before-writing"]);
});
