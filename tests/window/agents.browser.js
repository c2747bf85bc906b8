// Agents: the card of an agent, pausing, protecting its servers, quarantined files, and connecting a client.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Browser } from "./browser.js";
import { key, steps } from "./steps.js";

/** @type {Browser} */
let browser;
before(async () => (browser = await Browser.open()));
after(() => browser.close());
const { called, press, says } = steps(() => browser);

test("an agent's card shows its proof, its reach with access, and what is verified", async () => {
  await browser.go("agents/Claude%20Code");
  await says("Verified: /opt/claude/claude");
  const reach = await browser.run(`[...document.querySelectorAll("#page .reach")].map((one) => [...one.querySelectorAll("li")].map((line) => line.innerText.replace(/\\s+/g, " ").trim()))`);
  assert.deepEqual(reach, [["~/src/app read allowed by rule work", "~/Documents/tax read you allowed it Revoke", "~/Pictures/2026 read you allowed it Revoke"], ["docs.example.org"], ["everything you can reach"]]);
  await says("~/.claude.json");
  await press("session:s1");
  await says("zsh in gnome-terminal");
  await says("148 allowed, 3 denied, 4 asked");
  await press("session:s2");
  await says("not sandboxed: it can do anything you can");
});

test("agent can be paused and resumed, and a stopped server is reported", async () => {
  await browser.go("agents");
  await says("The server stopped (exit status 1; its last line on standard error: no module <b>photos</b>)");
  await press("pause:s1");
  await press("resume:s1");
  await press("pause:s1");
  await browser.until(`made.calls.filter(([name]) => name === "pause_session").length === 3`);
  assert.deepEqual(await called("pause_session"), [true, false, true].map((on) => ({ session: "s1", on })));
});

test("client is connected after a preview and a second click", async () => {
  await browser.go("agents");
  await press("connect:cursor");
  await says("<b>not markup</b>");
  assert.deepEqual(await called("write_client"), []);
  await press("leave:cursor");
  await press("connect:cursor");
  await press("write:cursor");
  await says("Written. Restart it");
  assert.deepEqual(await called("write_client"), [{ id: "cursor" }]);
});

test("client servers are protected one by one, and their keys move to the keyring unless the user declines", async () => {
  await browser.go("agents");
  await says("2 servers bypass IronCurtain");
  await press("bypass:claude-code");
  await says("not protected: started directly (npx jira-mcp) with all your rights");
  await press("move:claude-code:jira");
  await says('"move jira": "<b>not markup</b>"');
  await says("env.JIRA_TOKEN of jira, from now on keyring:jira-JIRA_TOKEN");
  await press("keys:claude-code");
  await says("It is then stored unprotected in IronCurtain's own settings.");
  await press("keys:claude-code");
  await browser.until(`made.calls.filter(([name]) => name === "plan_client").length === 3`);
  const wishes = (await called("plan_client")).map(({ wish }) => [wish.only, wish.secrets]);
  assert.deepEqual(wishes, [[["jira"], true], [["jira"], false], [["jira"], true]]);
  assert.deepEqual(await called("write_client"), []);
  await browser.run(`location.hash = "#servers/secrets"; return true`);
  await says("env.PHOTOS_TOKEN of photos");
  await press("move-secrets");
  await says("The settings then refer to keyring:photos-PHOTOS_TOKEN");
  await press("move-secrets:yes");
  await says("Moved. The servers now refer to them by name.");
});

test("quarantined file is restored after a warning and deleted after confirmation", async () => {
  await browser.go("agents");
  await press("quarantine");
  await says("This session is still active");
  assert.equal(await browser.run(`document.querySelector('${key("put-back:s1:/home/ada/src/app/.git/hooks/pre-commit")}').disabled`), true);
  await press("put-back:s0:/home/ada/src/site/.envrc");
  await says("/home/ada/src/site/.envrc is put back where it was, and runs when you enter this folder in a shell, with all your rights.");
  assert.deepEqual(await called("decide_file"), []);
  await press("put-back:s0:/home/ada/src/site/.envrc:yes");
  await browser.until(`document.querySelector('${key("put-back:s0:/home/ada/src/site/.envrc")}') === null`);
  await press("put-back:s0:/home/ada/src/site/Makefile");
  await says("The file in its place goes to quarantine.");
  await press("put-back:s0:/home/ada/src/site/Makefile:no");
  await press("delete-kept:s0:/home/ada/src/site/Makefile");
  await press("delete-kept:s0:/home/ada/src/site/Makefile:yes");
  await browser.until(`made.calls.filter(([name]) => name === "decide_file").length === 2`);
  assert.deepEqual((await called("decide_file")).map(({ choice }) => choice), ["put-back", "delete"]);
});
