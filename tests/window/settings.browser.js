// Settings: each one is saved when entered, and the export shows a sample first.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Browser } from "./browser.js";
import { key, steps } from "./steps.js";

/** @type {Browser} */
let browser;
before(async () => (browser = await Browser.open()));
after(() => browser.close());
const { called, press, says, made, type, choose } = steps(() => browser);

test("each setting is saved as it is entered", async () => {
  await browser.go("settings");
  await choose("notifications", "off");
  await says("None are shown. The question's own window still opens.");
  await choose("questions_per_minute", "5");
  await choose("denial_holds_seconds", "0");
  await browser.until(`made.calls.filter(([name]) => name === "change_settings").length === 3`);
  assert.deepEqual(await called("change_settings"), [{ notifications: "off" }, { questions_per_minute: 5 }, { denial_holds_seconds: 0 }].map((changes) => ({ changes })));
  await press("autostart");
  // Only turning the sandbox off asks for confirmation, and until then the switch shows what is stored.
  await press("unsandboxed");
  await says("If no sandbox can be created, servers start without one");
  const isOn = (name) => browser.run(`document.querySelector('${key("unsandboxed")}').checked`);
  assert.deepEqual([await isOn(), await browser.run("document.activeElement.dataset.key")], [true, "unsandboxed-off:no"]);
  await press("unsandboxed-off:no");
  await browser.until(`document.activeElement.dataset.key === "unsandboxed"`);
  await press("unsandboxed");
  await press("unsandboxed-off:yes");
  await says("Servers start without a sandbox if none can be created: each can do anything you can.");
  assert.equal(await isOn(), false);
  assert.deepEqual((await called("change_settings")).slice(3), [{ autostart: true }, { unsandboxed: "warn" }].map((changes) => ({ changes })));
  await made(`made.fail.change_settings = "the disk is full"`);
  await choose("keep_days", "30");
  await says("Not saved: the disk is full");
});

test("the export shows a sample before it can be turned on, and can be stopped", async () => {
  await browser.go("settings");
  await press("export");
  await browser.until(`document.querySelector('${key("export:sample")}')?.disabled`);
  await type("export:url", "https://otel.example.com:4318");
  assert.equal(await browser.run(`return document.querySelector('${key("export:on")}') === null`), true);
  await press("export:sample");
  await says('"ironcurtain.paths": "hashed"');
  await choose("export:paths", "none");
  await says('"ironcurtain.paths": "none"');
  await type("export:token", "otel");
  await press("export:on");
  await says("0 sent, 0 not delivered.");
  assert.deepEqual(await called("enable_export"), [{ url: "https://otel.example.com:4318", paths: "none", token: "otel" }]);
  await made(`made.export = { ...made.export, failure: "the collector answered with the status 500" }`);
  for (const page of ["home", "settings"]) {
    await browser.run(`location.hash = ${JSON.stringify(page)}; return true`);
    await browser.until(`document.querySelector("#page-${page} h1") !== null`);
  }
  await says("the collector answered with the status 500");
  await press("export:off");
  await browser.until(`document.querySelector('${key("export:url")}') !== null`);
  await made(`made.fail.enable_export = "it is invalid"`);
  await type("export:url", "x");
  await press("export:sample");
  await browser.until(`document.querySelector('${key("export:on")}') !== null`);
  await press("export:on");
  await says("it is invalid");
});
