// Every task of the window with the keyboard alone. The focus never falls back to the document.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Browser } from "./browser.js";
import { steps } from "./steps.js";

const ENTER = "\ue007";
const SPACE = " ";
const UP = "\ue013";
const DOWN = "\ue015";
const END = "\ue010";
const HOME = "\ue011";
const ESCAPE = "\ue00c";

/** @type {Browser} */
let browser;
before(async () => (browser = await Browser.open()));
after(() => browser.close());

const { at, called, reach } = steps(() => browser);
const says = (text) => browser.until(`document.querySelector("#page").innerText.includes(${JSON.stringify(text)})`);

/** Activates a control with a key and checks that the focus is not lost. */
async function press(key, by = ENTER) {
  await reach(key);
  await browser.keys(by);
  await browser.settled();
  const now = await at();
  assert.ok(now !== "BODY" && now !== "HTML", `the focus was lost after ${key}`);
  return now;
}

/** Types into a field and waits for the redraw, because the next key acts on the drawn page. */
async function type(key, text) {
  await reach(key);
  await browser.keys(...text);
  await browser.settled();
}

/** Selects the next option of a list with its keys. */
async function choose(key, ...keys) {
  await reach(key);
  await browser.keys(...keys);
  await browser.settled();
}

/** Opens a page by its link. */
async function open(page, tab = "") {
  await press(`nav:${page}`);
  await browser.until(`location.hash === "#${page}" && document.querySelector("#page-${page} h1") !== null`);
  assert.equal(await at(), "page", "the page has the focus, so that Tab goes on in it");
  if (tab) await turn(page, tab);
}

/** Opens a tab of a page by its link. */
async function turn(page, tab) {
  await press(`tab:${page}/${tab}`);
  await browser.until(`document.querySelector('[data-key="tab:${page}/${tab}"]')?.ariaCurrent === "page"`);
}

test("home: pending and missed questions, asking again, dismissing, and lockdown work by keyboard", async () => {
  await browser.go("home");
  await browser.run(`made.waiting = [{ id: "q1", sentence: "Claude Code wants to read a.md", line: "read ~/a.md", session: "s1", client: "Claude Code", expires_ms: Date.now() + 90_000 }]; made.change(); return true`);
  await press("show");
  await press("again:q8");
  await browser.until(`made.calls.some(([name]) => name === "ask_again")`);
  await press("forget:q9");
  await browser.until(`document.querySelector('[data-key="forget:q9"]') === null`);
  assert.notEqual(await at(), "BODY", "its row is gone");
  await press("lockdown");
  await browser.until(`document.activeElement?.dataset.key === "lockdown-off"`);
  await press("lockdown-off");
  await browser.until(`made.calls.filter(([name]) => name === "lock_down").length === 2`);
  assert.equal((await called("show_question")).length, 1);
});

test("agents: pause, resume, denials, leftover files, folders, restart and end work by keyboard", async () => {
  await browser.go("home");
  await open("agents");
  assert.equal(await press("pause:s1", SPACE), "resume:s1", "the button that takes its place");
  await press("resume:s1");
  await press("take-back:g1");
  await press("undeny:q5");
  await press("review:s1");
  await press("keep:s1:/home/ada/src/app/.vscode/tasks.json");
  await press("quarantine:s1:/home/ada/src/app/Makefile");
  await press("more:s2");
  assert.equal(await press("restart:s2"), "restart:s2:no", "a second press restarts nothing");
  await press("restart:s2:yes");
  await browser.until(`document.activeElement.dataset.key === "more:s2"`);
  await press("more:s1");
  await press("end:s1");
  await browser.until(`document.querySelector('[data-key="more:s1"]') === null`);
  assert.notEqual(await at(), "BODY", "its card is gone");
  const acts = ["pause_session", "revoke_grants", "forget_question", "decide_file", "restart_server", "end_session"];
  assert.deepEqual(await Promise.all(acts.map(async (act) => (await called(act)).length)), [2, 1, 1, 2, 1, 1]);
});

test("permissions: search, revoke, restore, change and add work by keyboard", async () => {
  await browser.go("home");
  await open("permissions");
  await press("take-back:g2");
  await says("Revoked, verified");
  assert.notEqual(await at(), "BODY");
  await press("undo:g2");
  await press("undo:g2:yes");
  await browser.until(`made.calls.some(([name]) => name === "restore_grant")`);
  await press("select");
  await press("select:g1", SPACE);
  await press("select:g3", SPACE);
  await press("take-back-selected");
  await press("take-back-selected:yes");
  await browser.until(`made.calls.filter(([name]) => name === "revoke_grants").length === 2`);
  assert.deepEqual((await called("revoke_grants"))[1].grants.toSorted(), ["g1", "g3"]);
  await press("more-grants");
  await press("take-back-everything");
  for (const then of ["take-back-everything", "more-grants"]) {
    await browser.keys(ESCAPE);
    await browser.settled();
    assert.equal(await at(), then, "Escape leaves the confirmation, then the menu");
  }
  await press("grant:g4");
  await reach("less:g4:read");
  await browser.keys(ESCAPE);
  await browser.until(`document.querySelector('[data-key="close:g4"]') === null`);
  await press("gift");
  await browser.until(`document.activeElement.dataset.key === "gift-client"`);
  await press("gift:write", SPACE);
  await press("pick-folder");
  await says("Granted: ~/Documents/recipes");
  await type("find-grants", "recipes");
  await browser.until(`document.querySelectorAll('[data-key^="take-back:g"]').length === 1`);
  await browser.run(`document.activeElement.value = ""; document.activeElement.dispatchEvent(new Event("input")); return true`);
  await press("undecline:g7");
  assert.deepEqual((await called("grant_beforehand")).map(({ gift }) => gift.access), [["read", "write"]]);
});

test("rules: try, move, remove, add and save work by keyboard", async () => {
  await browser.go("home");
  await open("rules");
  await press("try");
  await press("try-it");
  await reach("move:deny-secrets");
  await browser.keys(DOWN);
  await browser.settled();
  assert.equal(await at(), "move:deny-secrets", "the handle moves with its rule");
  const order = () => browser.run(`[...document.querySelectorAll("#page .rules .name")].map((one) => one.innerText)`);
  assert.deepEqual(await order(), ["work", "deny-secrets", "ask-before-writing"]);
  assert.equal(await browser.run(`document.querySelector("#said").textContent`), "deny-secrets is now rule 2 of 3");
  await press("more:work");
  assert.equal(await press("later:work"), "later:work", "it moves with its rule");
  await browser.keys(ESCAPE);
  await browser.settled();
  assert.equal(await at(), "more:work");
  await press("then:work");
  await press("then:work:deny");
  assert.equal(await at(), "then:work");
  await press("more:ask-before-writing");
  await press("remove:ask-before-writing");
  await press("add-rule");
  await browser.until(`document.activeElement.dataset.key === "draft-server"`);
  await type("draft-path", "~/Documents");
  await press("dry-run");
  await browser.until(`!document.querySelector('[data-key="save-rules"]').disabled`);
  await press("save-rules");
  await press("save-rules:yes");
  await browser.until(`made.calls.some(([name]) => name === "save_rules")`);
});

test("servers: log, restart, tools and updates work by keyboard", async () => {
  await browser.go("home");
  await open("servers");
  await press("server:photos");
  await press("log:s2");
  await press("server-restart:s2");
  await press("server-restart:s2:yes");
  await press("look:photos");
  await press("look:photos:yes");
  await browser.until(`document.activeElement.dataset.key === "drop:photos"`);
  await press("keep:photos");
  await press("keep:photos:yes");
  await press("more:fetch");
  await press("update:fetch");
  await browser.until(`document.activeElement.dataset.key === "leave-update:fetch"`);
  await press("take:fetch");
  await press("take:fetch:yes");
  const acts = ["restart_server", "save_tools", "apply_update"];
  await browser.until(`${JSON.stringify(acts)}.every((act) => made.calls.some(([name]) => name === act))`);
  assert.notEqual(await at(), "BODY");
});

test("servers: adding by list, URL and bundle, and secrets work by keyboard", async () => {
  await browser.go("home");
  await open("servers", "add");
  await press("add:time");
  await type("add-what", "npm:far");
  await press("plan-server");
  await press("write-server");
  assert.equal(await press("choose-bundle"), "bundle-name");
  assert.equal(await press("bundle-pick:folder"), "bundle-pick:folder");
  await type("bundle:key", "s3cret");
  await press("bundle:sync", SPACE);
  assert.equal(await press("plan-bundle"), "drop-server", "a second press adds nothing");
  await browser.keys(ESCAPE);
  await browser.settled();
  assert.equal(await at(), "bundle-name");
  await browser.keys(ESCAPE);
  await browser.settled();
  assert.equal(await at(), "choose-bundle", "Escape leaves the bundle");
  await press("choose-bundle");
  await press("bundle-pick:folder");
  await type("bundle:key", "s3cret");
  await press("plan-bundle");
  await press("write-server");
  await browser.until(`made.calls.filter(([name]) => name === "write_server").length === 2`);
  await turn("servers", "secrets");
  await type("secret-name", "photos-token");
  await type("secret-value", "s3cret");
  await press("set-secret");
  await browser.until(`made.calls.some(([name]) => name === "set_secret")`);
  await press("remove-secret:brave-key");
  await press("remove-secret:brave-key:yes");
  await press("move-secrets");
  await press("move-secrets:yes");
  const acts = ["add_server", "write_server", "set_secret", "remove_secret", "write_secret_move"];
  await browser.until(`${JSON.stringify(acts)}.every((act) => made.calls.some(([name]) => name === act))`);
  assert.notEqual(await at(), "BODY");
});

test("servers: remove, restore, hosts, limits and profiles work by keyboard", async () => {
  await browser.go("home");
  await open("servers");
  await press("more:photos");
  await press("remove:photos");
  await browser.until(`document.activeElement.dataset.key === "remove-leave:photos"`);
  await press("remove-now:photos");
  await press("restore:photos");
  await browser.until(`made.calls.some(([name]) => name === "restore_server")`);
  await press("removed-more:trello");
  await press("forget:trello");
  await press("forget:trello:yes");
  await press("server:fetch");
  await type("open-host:fetch", "a.example");
  assert.equal(await press("open-host:fetch:plan"), "open-leave:fetch", "a second press opens nothing");
  await browser.keys(ESCAPE);
  await browser.until(`document.querySelector('[data-key="open-leave:fetch"]') === null`);
  await press("open-write:fetch:plan");
  await press("open-now:fetch");
  await press("close:fetch:host:docs.example.org");
  await press("close:fetch:host:docs.example.org:yes");
  await type("limit:fetch:memory", "512");
  assert.equal(await press("limits-plan:fetch"), "limits-leave:fetch", "a second press writes nothing");
  await press("limits-write:fetch");
  await turn("servers", "profiles");
  await press("profile-new");
  await browser.until(`document.activeElement.dataset.key === "profile-name"`);
  await type("profile-name", "play");
  await press("profile-server:fetch", SPACE);
  await press("profile-save");
  await press("profile-more:play");
  await press("profile-remove:play");
  await press("profile-remove:play:yes");
  const acts = ["remove_server", "restore_server", "forget_server", "write_opening", "close_opening", "write_limits", "change_profile", "delete_profile"];
  await browser.until(`${JSON.stringify(acts)}.every((act) => made.calls.some(([name]) => name === act))`);
  assert.deepEqual(await Promise.all(acts.map(async (act) => (await called(act)).length)), acts.map(() => 1));
});

test("quarantine and granting tools and hosts work by keyboard", async () => {
  await browser.go("home");
  await open("agents");
  await press("quarantine");
  await press("put-back:s0:/home/ada/src/site/.envrc");
  await press("put-back:s0:/home/ada/src/site/.envrc:yes");
  await press("delete-kept:s0:/home/ada/src/site/Makefile");
  await press("delete-kept:s0:/home/ada/src/site/Makefile:yes");
  await browser.until(`made.calls.filter(([name]) => name === "decide_file").length === 2`);
  assert.deepEqual((await called("decide_file")).map(({ choice }) => choice), ["put-back", "delete"]);
  await open("permissions");
  await press("gift");
  await browser.until(`document.activeElement.dataset.key === "gift-client"`);
  await choose("gift-server", DOWN);
  await choose("gift-kind", DOWN);
  await press("gift-give");
  await says("Granted: list_pages");
  await choose("gift-kind", DOWN);
  await type("gift-host", "api.example.com");
  await press("gift-give");
  await says("Granted: api.example.com");
  assert.deepEqual((await called("grant_beforehand")).map(({ gift }) => gift.what), ["list_pages", "api.example.com"]);
});

test("clients: assigning a profile and protecting a server without its keys work by keyboard", async () => {
  await browser.go("home");
  await open("agents");
  await press("bypass:claude-code");
  await press("move:claude-code:jira");
  await browser.until(`document.activeElement.dataset.key === "leave:claude-code"`);
  await press("keys:claude-code", SPACE);
  await browser.until(`made.calls.filter(([name]) => name === "plan_client").length === 2`);
  await press("write:claude-code");
  await press("client:cursor");
  await press("profile:cursor:work");
  await browser.until(`document.activeElement.dataset.key === "leave:cursor"`);
  await browser.keys(ESCAPE);
  await browser.until(`document.querySelector('[data-key="leave:cursor"]') === null`);
  await press("client:cursor");
  await press("profile:cursor:work");
  await press("write:cursor");
  await browser.until(`made.calls.filter(([name]) => name === "write_client").length === 2`);
  assert.deepEqual((await called("plan_client")).map(({ wish }) => wish.secrets ?? wish.profile), [true, false, "work", "work"]);
});

test("arrow keys move between pages and rows and keep their meaning in fields", async () => {
  await browser.go("home");
  await reach("nav:home");
  await browser.keys(DOWN, DOWN);
  assert.equal(await at(), "nav:agents");
  await browser.keys(UP, END);
  assert.equal(await at(), "nav:settings");
  await browser.keys(HOME, UP);
  assert.equal(await at(), "nav:home", "there is none before it");
  await open("permissions");
  const rows = await browser.run(`[...document.querySelectorAll("main .row [data-key^='take-back:']")].map((one) => one.dataset.key)`);
  await reach(rows[0]);
  const seen = [await at()];
  for (let n = 1; n < rows.length; n += 1) {
    await browser.keys(DOWN);
    seen.push(await at());
  }
  assert.deepEqual(seen, rows);
  await browser.keys(UP);
  assert.equal(await at(), rows.at(-2));
  await browser.keys(HOME);
  assert.equal(await at(), rows[0]);
  await press("select");
  await reach("select:g1");
  await browser.keys(DOWN);
  assert.match(await at(), /^select:/);
  await type("find-grants", "a");
  await browser.keys(DOWN);
  assert.equal(await at(), "find-grants", "a field keeps the arrows");
  await browser.run(`document.activeElement.value = ""; document.activeElement.dispatchEvent(new Event("input")); return true`);
  assert.deepEqual(await called("revoke_grants"), [], "no arrow does anything");
});

test("clients, audit log, settings and setup work by keyboard", async () => {
  await browser.go("home");
  await open("agents");
  await press("connect:cursor");
  await press("write:cursor");
  await browser.until(`made.calls.some(([name]) => name === "write_client")`);
  await open("activity");
  await type("find", "a.md");
  await browser.until(`document.querySelectorAll(".vlist .line").length === 1`);
  await press("record");
  await press("export:csv");
  assert.equal(await press("log"), "log");
  await press("rule:1479");
  await browser.until(`location.hash === "#rules" && document.activeElement?.dataset.key === "draft-then"`);
  await open("settings");
  await reach("notifications");
  await press("autostart", SPACE);
  await press("unsandboxed", SPACE);
  await browser.until(`made.calls.some(([name]) => name === "change_settings")`);
  await browser.go("welcome");
  await browser.run(`document.querySelector("#page").focus(); return true`);
  for (let n = 0; n < 4; n += 1) assert.equal(await press("step:next"), "step:title", "a step is read from its beginning");
  await press("practise");
  await press("look");
  await press("step:leave");
  await browser.until(`location.hash === "#home"`);
});
