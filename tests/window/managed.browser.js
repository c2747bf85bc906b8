// A computer that an organization manages: what it manages is shown and locked, and its rules are named and read-only.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Browser } from "./browser.js";
import { key, steps } from "./steps.js";

/** @type {Browser} */
let browser;
before(async () => (browser = await Browser.open()));
after(() => browser.close());
const { called, press, says, made, type, looksAccessible } = steps(() => browser);

const exists = (name) => browser.run(`return document.querySelector('${key(name)}') !== null`);
/** Waits for a control, and evaluates a script with it. */
async function of(name, script) {
  await browser.until(`document.querySelector('${key(name)}') !== null`);
  return browser.run(`return document.querySelector('${key(name)}')${script}`);
}
const isOff = (name) => of(name, ".disabled");
/** Returns the text of the row that contains a control. */
const rowOf = (name) => of(name, '.closest(".row").innerText');
const isShown = (text) => browser.run(`return document.querySelector("#page").innerText.includes(${JSON.stringify(text)})`);

/** Changes the fake app and opens the settings again, which loads them. */
async function reopened(script) {
  await made(script);
  for (const page of ["rules", "settings"]) {
    await browser.run(`location.hash = ${JSON.stringify(page)}; return true`);
    await browser.until(`document.querySelector("#page-${page} h1") !== null`);
  }
  await browser.settled();
}

for (const theme of ["light", "dark"]) {
  test(`axe finds nothing on the settings and rules of a managed computer, ${theme}`, async () => {
    await browser.go("settings", { theme, isManaged: true });
    await press("organization");
    await press("export");
    await says("Every permission ends after 8 hours at the latest.");
    await looksAccessible();
    await browser.go("rules", { theme, isManaged: true });
    await press("source:managed:no-customer-data");
    await says('"within": "~/customers"');
    await looksAccessible();
  });
}

test("every setting that the organization manages is listed", async () => {
  await browser.go("settings", { isManaged: true });
  await says("Rules: revision 2026-11-26 \u00b7 7 settings \u00b7 receives your record");
  await press("organization");
  await says("No server starts without a sandbox.");
  const listed = await browser.run(`return [...document.querySelectorAll(".locks li")].map((one) => one.innerText.trim())`);
  assert.deepEqual(listed, [
    "No server starts without a sandbox.",
    "You are asked about every host that a server or run connects to.",
    "Only these servers start: mcp-server-git, https://mcp.example.com/*.",
    "These servers do not start: photos (by name).",
    "Every permission ends after 8 hours at the latest.",
    "Nothing starts until your record is exported to https://otel.example.com:4318.",
    "Your record is exported without paths.",
  ]);
  await reopened(`Object.assign(made.settings.managed.settings, { forbid_unsandboxed: false, network: "never", allowed_servers: [], denied_servers: [], max_grant_minutes: 90, require_export: true, export_url: null, export_paths: "full" })`);
  for (const text of ["A server that needs a sandbox does not start without one.", "Servers and runs have no network. Remote servers do not start.", "No server starts.", "after 90 minutes", "Nothing starts until your record is exported.", "Your record is exported with full paths."]) await says(text);
});

test("locked controls are disabled and say who locked them", async () => {
  await browser.go("settings", { isManaged: true });
  assert.equal(await isOff("unsandboxed"), true);
  assert.match(await rowOf("unsandboxed"), /Set by Example Inc\./);
  assert.equal(await isOff("max_sessions"), false);
  // Without an organization, the same control is enabled.
  await browser.go("settings");
  assert.equal(await isOff("unsandboxed"), false);
  assert.equal(await isShown("Example Inc."), false);
});

test("a required export cannot be stopped, and any other can", async () => {
  await browser.go("settings", { isManaged: true });
  await press("export");
  await says("Example Inc. requires the export: without it, no server and no run starts.");
  await says("Paths are left out.");
  assert.equal(await isOff("export:off"), true);
  await reopened(`Object.assign(made.export.managed, { url: null, paths: null, is_required: false })`);
  await browser.until(`document.querySelector('${key("export:off")}')?.disabled === false`);
  await press("export:off");
  await browser.until(`made.calls.some(([name]) => name === "disable_export")`);
});

test("a required export is started with the organization's collector and form of paths", async () => {
  await browser.go("settings", { isManaged: true });
  await reopened(`made.export = { ...made.export, url: null, managed: { ...made.export.managed, is_missing: true, is_required: false } }`);
  await says("Example Inc. requires the export: nothing starts without it.");
  await press("export");
  assert.deepEqual([await isOff("export:url"), await isOff("export:paths")], [true, true]);
  assert.deepEqual(await browser.run(`return ["export:url", "export:paths"].map((name) => document.querySelector('[data-key="' + name + '"]').value)`), ["https://otel.example.com:4318", "none"]);
  await press("export:sample");
  await says('"ironcurtain.paths": "none"');
  await press("export:on");
  await browser.until(`made.calls.some(([name]) => name === "enable_export")`);
  // Only the organization's form applies, so none is stored as the user's choice.
  assert.deepEqual(await called("enable_export"), [{ url: "https://otel.example.com:4318", paths: null, token: "" }]);
});

test("a free choice of collector and paths stays free", async () => {
  await browser.go("settings", { isManaged: true });
  await reopened(`made.export = { ...made.export, url: null, paths: "hashed", managed: { organization: "Example Inc.", url: null, paths: null, is_missing: true, is_required: false } }`);
  await press("export");
  assert.deepEqual([await isOff("export:url"), await isOff("export:paths")], [false, false]);
  await type("export:url", "https://mine.example.com");
  await press("export:sample");
  await press("export:on");
  await browser.until(`made.calls.some(([name]) => name === "enable_export")`);
  assert.deepEqual(await called("enable_export"), [{ url: "https://mine.example.com", paths: "hashed", token: "" }]);
});

test("another collector than the required one says what to do", async () => {
  await browser.go("settings", { isManaged: true });
  await reopened(`made.export = { ...made.export, url: "https://mine.example.com", managed: { ...made.export.managed, is_missing: true, is_required: false } }`);
  await says("Nothing starts until you stop this export and start the one to https://otel.example.com:4318, which Example Inc. requires.");
  await press("export");
  await browser.until(`document.querySelector('${key("export:off")}')?.disabled === false`);
});

test("the organization's row says what applies before its rules are downloaded, and who receives the record", async () => {
  await browser.go("settings", { isManaged: true });
  await says("receives your record");
  await reopened(`Object.assign(made.settings.managed, { revision: null, without: "deny", record: "chosen", problem: "the last downloaded bundle is not used: the signature does not match the public key" })`);
  await says("Its rules cannot be used, so every call is denied: the last downloaded bundle is not used: the signature does not match the public key");
  await says("you chose who receives your record");
  await reopened(`Object.assign(made.settings.managed, { without: "ask", record: "nobody", problem: null })`);
  await says("Its rules are not downloaded yet, so you are asked about every call.");
  await says("your record is not exported");
  const nothing = `{ enforce_sandbox: false, forbid_unsandboxed: false, require_export: false, export_url: null, export_paths: null, max_grant_minutes: null, network: null, allowed_servers: null, denied_servers: [] }`;
  await reopened(`made.settings.managed.settings = ${nothing}`);
  await browser.until(`document.querySelector('${key("organization")}') === null`);
  assert.equal(await isShown("manages nothing"), false);
  await reopened(`made.settings.managed.without = null`);
  await says("manages nothing yet");
});

test("the organization's rules are listed first, and cannot be changed", async () => {
  await browser.go("rules", { isManaged: true });
  await says("Rules of Example Inc.");
  await says("Your rules");
  const names = await browser.run(`return [...document.querySelectorAll("#page .row .name")].map((one) => one.innerText)`);
  assert.deepEqual(names, ["managed:setting-network", "managed:no-customer-data", "deny-secrets", "work", "ask-before-writing"]);
  await says("Agents must not use customer data.");
  const found = await browser.run(`return [...document.querySelectorAll("#page .row")].slice(0, 2).map((row) => [row.querySelectorAll("use[href$=lock]").length, [...row.querySelectorAll("button")].map((one) => one.dataset.key)])`);
  assert.deepEqual(found, [[1, ["source:managed:setting-network"]], [1, ["source:managed:no-customer-data"]]]);
  assert.deepEqual([await exists("more:managed:no-customer-data"), await exists("more:work")], [false, true]);
  // Changing the user's rules leaves the organization's as they are.
  await press("more:work");
  await press("remove:work");
  await says("Changed, not saved.");
  await says("managed:no-customer-data");
  await browser.go("rules");
  assert.equal(await isShown("Your rules"), false);
});

test("settings and rules of a managed computer have at most 120 words besides headings and data", async () => {
  for (const page of ["settings", "rules"]) {
    await browser.go(page, { isManaged: true });
    const words = await browser.run(`
      const copy = document.querySelector("#page").cloneNode(true);
      copy.querySelectorAll("h1, h2, h3, svg, .path, .says-what bdi, code, pre, dd, time, .unseen, .agent-icon, [class*=count], option:not([selected])").forEach((one) => one.remove());
      return copy.textContent.split(/\\s+/).filter((word) => /\\p{L}/u.test(word)).length`);
    console.log(`${page}: ${words} words`);
    assert.ok(words <= 120, `${page}: ${words}`);
  }
});
