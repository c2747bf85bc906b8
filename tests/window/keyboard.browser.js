// Every job of the window with the keyboard alone; and whatever is pressed, the focus never falls back to the whole window.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Browser } from "./browser.js";

const TAB = "\ue004";
const SHIFT = "\ue008";
const ENTER = "\ue007";
const SPACE = " ";
/** More controls than any page has. */
const MOST = 260;

/** @type {Browser} */
let browser;
before(async () => (browser = await Browser.open()));
after(() => browser.close());

/** What has the focus: its key, the id of what has none, or `BODY`. */
const at = () => browser.run(`const on = document.activeElement; return on.dataset.key ?? (on.id || on.tagName)`);
const called = (command) => browser.run(`made.calls.filter(([name]) => name === ${JSON.stringify(command)}).map(([, values]) => values)`);
const says = (text) => browser.until(`document.querySelector("#page").innerText.includes(${JSON.stringify(text)})`);
/** Until everything is drawn that the last key led to. */
const drawn = () => browser.wait(`setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(() => done(true))), 30)`);

/** Goes to a control by the Tab key: on from where the focus is, and back where it is not there. */
async function reach(key) {
  await browser.until(`document.querySelector('[data-key=${JSON.stringify(key)}]') !== null`);
  const ahead = await browser.run(`const on = document.activeElement, to = document.querySelector('[data-key=${JSON.stringify(key)}]'); return on === to || (on.compareDocumentPosition(to) & (Node.DOCUMENT_POSITION_FOLLOWING | Node.DOCUMENT_POSITION_CONTAINED_BY)) !== 0`);
  for (let n = 0; n < MOST; n += 1) {
    if ((await at()) === key) return;
    await (ahead ? browser.keys(TAB) : browser.chord(SHIFT, TAB));
  }
  assert.fail(`no key leads to ${key}; the last one to ${await at()}`);
}

/** Presses a control by a key, and looks where that leaves the focus. */
async function press(key, by = ENTER) {
  await reach(key);
  await browser.keys(by);
  await drawn();
  const now = await at();
  assert.ok(now !== "BODY" && now !== "HTML", `after ${key} the focus is nowhere`);
  return now;
}

/** Types into a field. */
async function type(key, text) {
  await reach(key);
  await browser.keys(...text);
}

/** Opens a page by its link. */
async function open(page) {
  await press(`nav:${page}`);
  await browser.until(`location.hash === "#${page}" && document.querySelector("#page-${page} h1") !== null`);
  assert.equal(await at(), "page", "the page has the focus, so that Tab goes on in it");
}

test("home: what waits is shown, what nobody answered is asked again or forgotten, and lockdown begins and ends", async () => {
  await browser.go("home");
  await browser.run(`made.waiting = [{ id: "q1", sentence: "Claude Code wants to read a.md", line: "read ~/a.md" }]; made.change(); return true`);
  await press("show");
  await press("again:q8");
  await browser.until(`made.calls.some(([name]) => name === "ask_again")`);
  await press("forget:q9");
  await browser.until(`document.querySelector('[data-key="forget:q9"]') === null`);
  assert.notEqual(await at(), "BODY", "its row is gone");
  assert.equal(await press("lockdown"), "lockdown:no", "leaving it has the focus");
  await press("lockdown:yes");
  await says("Locked down");
  await press("lockdown-off");
  await press("lockdown-off:yes");
  await browser.until(`made.calls.filter(([name]) => name === "lock_down").length === 2`);
  assert.equal((await called("show_question")).length, 1);
});

test("sessions: pause and resume, noes, what was left, folders, restart, end", async () => {
  await browser.go("home");
  await open("sessions");
  assert.equal(await press("pause:s1", SPACE), "resume:s1", "the button that takes its place");
  await press("resume:s1");
  await press("take-back:g1");
  await press("undeny:q5");
  await press("keep:s1:/home/ada/src/app/.vscode/tasks.json");
  await press("quarantine:s1:/home/ada/src/app/Makefile");
  await press("restart:s2");
  await press("restart:s2:yes");
  await press("end:s1");
  await browser.until(`document.querySelector('[data-key="end:s1"]') === null`);
  assert.notEqual(await at(), "BODY", "its card is gone");
  const acts = ["pause_session", "take_back", "forget_question", "decide_left", "restart_server", "end_session"];
  assert.deepEqual(await Promise.all(acts.map(async (act) => (await called(act)).length)), [2, 1, 1, 2, 1, 1]);
});

test("what you granted: found, taken back one and several, given again, changed, given beforehand", async () => {
  await browser.go("home");
  await open("granted");
  await press("take-back:g2");
  await says("Taken back, proved");
  assert.notEqual(await at(), "BODY");
  await press("undo:g2");
  await press("undo:g2:yes");
  await browser.until(`made.calls.some(([name]) => name === "give_again")`);
  await press("select:g1", SPACE);
  await press("select:g3", SPACE);
  await press("take-back-selected");
  await press("take-back-selected:yes");
  await browser.until(`made.calls.filter(([name]) => name === "take_back").length === 2`);
  assert.deepEqual((await called("take_back"))[1].grants.toSorted(), ["g1", "g3"]);
  await press("change:g4");
  await press("close:g4");
  await press("gift");
  await press("gift:write", SPACE);
  await press("pick-folder");
  await says("Granted: ~/Documents/recipes");
  await type("find-grants", "recipes");
  await browser.until(`document.querySelectorAll('[data-key^="take-back:g"]').length === 1`);
  await browser.run(`document.activeElement.value = ""; document.activeElement.dispatchEvent(new Event("input")); return true`);
  await press("undecline:g7");
  assert.deepEqual((await called("grant_beforehand")).map(({ gift }) => gift.access), [["read", "write"]]);
});

test("rules: a call is tried, rules are moved, removed and added, and saved after they were tried", async () => {
  await browser.go("home");
  await open("rules");
  await press("try");
  await press("try-it");
  assert.equal(await press("later:deny-secrets"), "later:deny-secrets", "it moves with its rule");
  await press("remove:ask-before-writing");
  assert.equal(await press("add-rule"), "draft-server");
  await type("draft-path", "~/Documents");
  await press("dry-run");
  await browser.until(`!document.querySelector('[data-key="save-rules"]').disabled`);
  await press("save-rules");
  await press("save-rules:yes");
  await browser.until(`made.calls.some(([name]) => name === "save_rules")`);
});

test("servers: lines, restart, tools, one from the list, one by its address, and a secret", async () => {
  await browser.go("home");
  await open("servers");
  await press("log:s2");
  await press("server-restart:s2");
  await press("server-restart:s2:yes");
  await press("look:git");
  await press("look:git:yes");
  await press("keep:git");
  await press("keep:git:yes");
  await press("add:time");
  await press("add-other");
  await type("add-what", "npm:far");
  await press("plan-server");
  await press("write-server");
  await type("secret-name", "git-token");
  await type("secret-value", "s3cret");
  await press("set-secret");
  await browser.until(`made.calls.some(([name]) => name === "set_secret")`);
  await press("remove-secret:brave-key");
  await press("remove-secret:brave-key:yes");
  const acts = ["restart_server", "keep_tools", "add_server", "write_server", "set_secret", "remove_secret"];
  await browser.until(`${JSON.stringify(acts)}.every((act) => made.calls.some(([name]) => name === act))`);
  assert.notEqual(await at(), "BODY");
});

test("clients, the record, settings and the first steps", async () => {
  await browser.go("home");
  await open("clients");
  await press("connect:cursor");
  await press("write:cursor");
  await browser.until(`made.calls.some(([name]) => name === "write_client")`);
  await open("activity");
  await type("find", "a.md");
  await browser.until(`document.querySelectorAll(".log .row").length === 1`);
  await press("export:csv");
  assert.equal(await press("call:1479"), "call:1479");
  await press("rule:1479");
  await browser.until(`location.hash === "#rules" && document.activeElement?.dataset.key === "draft-then"`);
  await open("settings");
  await reach("notifications");
  await press("autostart", SPACE);
  await browser.until(`made.calls.some(([name]) => name === "change_settings")`);
  await browser.go("welcome");
  await browser.run(`document.querySelector("#page").focus(); return true`);
  for (let n = 0; n < 4; n += 1) await press("step:next");
  await press("practise");
  await press("look");
  await press("step:leave");
  await browser.until(`location.hash === "#home"`);
});
