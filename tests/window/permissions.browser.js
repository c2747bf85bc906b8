// The Permissions page: adding, sorting and revoking grants, undoing a revocation or a denial, and clicks while rows change.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Browser } from "./browser.js";
import { key, steps } from "./steps.js";

const TAB = "\ue004";
const ENTER = "\ue007";

/** @type {Browser} */
let browser;
before(async () => (browser = await Browser.open()));
after(() => browser.close());
const { called, press, says, made, choose } = steps(() => browser);

test("folder is granted by keyboard after a summary", async () => {
  await browser.go("permissions");
  await browser.run(`document.querySelector('${key("gift")}').focus(); return true`);
  await browser.keys(ENTER);
  await browser.until(`document.activeElement.dataset.key === "gift-client"`);
  await says("Claude Code may read what you pick, through filesystem, for 1 hour.");
  for (let n = 0; n < 12 && (await browser.run("document.activeElement.dataset.key")) !== "pick-folder"; n += 1) await browser.keys(TAB);
  await browser.keys(ENTER);
  await says("Granted: ~/Documents/recipes");
  assert.deepEqual(await called("grant_beforehand"), [{ gift: { client: "/opt/claude/claude", server: "filesystem", kind: "folder", what: "", access: ["read"], lifetime: "hour" } }]);
});

test("tool and host are granted after a summary and listed with other permissions", async () => {
  await browser.go("permissions");
  await press("gift");
  await browser.until(`document.querySelector('${key("gift-kind")}') !== null`);
  await choose("gift-server", "filesystem");
  await choose("gift-kind", "tool");
  await says("The effect of every tool of filesystem depends on its arguments");
  await choose("gift-server", "fetch");
  await says("Claude Code may use list_pages of fetch without asking, with any arguments, for 1 hour.");
  await press("gift-give");
  await says("Granted: list_pages");
  await choose("gift-kind", "host");
  await says("Enter the name of the host.");
  await browser.run(`const host = document.querySelector('${key("gift-host")}'); host.value = "api.example.com"; host.dispatchEvent(new Event("input")); return true`);
  await says("Claude Code may connect to api.example.com through fetch, and send any data to it, for 1 hour.");
  await press("gift-give");
  await says("Granted: api.example.com");
  assert.deepEqual((await called("grant_beforehand")).map(({ gift }) => [gift.kind, gift.what, gift.server]), [["tool", "list_pages", "fetch"], ["host", "api.example.com", "fetch"]]);
  await browser.until(`document.querySelectorAll('#page .row button[data-key^="take-back:g"]').length >= 8`);
});

test("permissions are grouped by folder and sorted", async () => {
  await browser.go("permissions");
  const names = () => browser.run(`[...document.querySelectorAll("#page .row .path")].map((one) => one.textContent)`);
  await press("order");
  await browser.until(`document.querySelector('${key("by")}') !== null`);
  await choose("by", "folder");
  await browser.until(`document.querySelector("#page h2")?.innerText === "Hosts"`);
  await choose("by", "client");
  await choose("sort", "ends");
  await browser.until(`document.querySelector("#page .row .path").textContent === "~/Pictures/2026"`);
  assert.equal((await names())[1].startsWith("send_message"), true);
});

test("click during updates affects the row it began on", async () => {
  await browser.go("permissions");
  await made(`made.grants = Array.from({ length: 60 }, (_, n) => ({ ...made.grants[0], id: "row" + n, path: "/home/ada/f" + String(n).padStart(2, "0") }))`);
  await says("f59");
  // 20 changes per second, each with new figures in every row.
  await browser.run(`window.traffic = setInterval(() => { made.grants = made.grants.map((one) => ({ ...one, uses: one.uses + 1, last_used_ms: Date.now() })); made.change(); }, 50); return true`);
  const meant = [];
  for (let n = 20; n < 40; n += 1) {
    meant.push(`row${n}`);
    // While the button is down, a row is inserted at the top.
    await browser.press(key(`take-back:row${n}`), async () => {
      await browser.run(`made.grants.unshift({ ...made.grants[0], id: "new${n}", path: "/home/ada/a${n}" }); made.change(); return true`);
      const answers = `made.calls.filter(([name]) => name === "snapshot").length`;
      const before = await browser.run(answers);
      await browser.until(`${answers} >= ${before + 3}`);
    });
    await browser.until(`document.querySelector('${key(`take-back:new${n}`)}') !== null && made.calls.filter(([name]) => name === "revoke_grants").length >= ${meant.length}`);
  }
  await browser.run(`clearInterval(window.traffic); return true`);
  assert.deepEqual((await called("revoke_grants")).flatMap(({ grants }) => grants), meant);
  await says("Revoked, verified");
});

test("revoking shows the proof and undo asks again", async () => {
  await browser.go("permissions");
  await press("take-back:g2");
  await says("Revoked, verified");
  await press("undo:g2");
  await says("Claude Code may read /home/ada/Pictures/2026 and everything in it again");
  assert.deepEqual(await called("restore_grant"), []);
  assert.equal(await browser.run("document.activeElement.dataset.key"), "undo:g2:no");
  await press("undo:g2:yes");
  await browser.until(`document.querySelector('${key("take-back:g2-again")}') !== null`);
  await press("take-back:g4");
  await says("Not revoked: the server could not be restarted");
});

test("revoking several, an agent's or all permissions asks for one confirmation", async () => {
  await browser.go("permissions");
  await press("select");
  await press("select:g1");
  await press("select:g3");
  await press("take-back-selected");
  await says("2 permissions of Claude Code are revoked now.");
  assert.deepEqual(await called("revoke_grants"), []);
  await press("take-back-selected:yes");
  await browser.until(`made.calls.some(([name]) => name === "revoke_grants")`);
  assert.deepEqual((await called("revoke_grants"))[0].grants.toSorted(), ["g1", "g3"]);
  await press("take-back-of:Claude Code");
  await press("take-back-of:Claude Code:yes");
  await browser.until(`made.calls.filter(([name]) => name === "revoke_grants").length === 2`);
  assert.deepEqual((await called("revoke_grants"))[1].grants.toSorted(), ["g2", "g5", "g6", "g8"]);
  await press("more-grants");
  await press("take-back-everything");
  await says("1 permission of Cursor is revoked now.");
  await press("take-back-everything:yes");
  await says("Not all were revoked: 1 permission; each says why below");
  assert.deepEqual((await called("revoke_grants"))[2], { grants: ["g4"] });
});

test("denials are listed and undone", async () => {
  await browser.go("agents");
  await press("undeny:q5");
  await browser.until(`document.querySelector('${key("undeny:q5")}') === null`);
  assert.deepEqual(await called("forget_question"), [{ question: "q5" }]);
  await browser.run(`location.hash = "#permissions"; return true`);
  await says("You said no");
  await press("undecline:g7");
  await browser.until(`made.calls.some(([name, { grants }]) => name === "revoke_grants" && grants[0] === "g7")`);
});
