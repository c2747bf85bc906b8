// The window shows what is stored and known: failed and late answers, repeated presses, and updates while the user decides.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Browser } from "./browser.js";
import { key, steps } from "./steps.js";

const [ENTER, UP] = ["\ue007", "\ue013"];

/** @type {Browser} */
let browser;
before(async () => (browser = await Browser.open({ width: 1000, height: 700 })));
after(() => browser.close());
const { called, press, says, made, type, choose } = steps(() => browser);

/** Opens everything that can be opened. */
async function openAll() {
  await browser.run(`document.querySelectorAll(".chevron[aria-expanded='false']").forEach((one) => one.click()); return true`);
  await browser.settled();
}

test("a double press of Lock down, with the pointer or a key, does not end the lockdown", async () => {
  await browser.go("home");
  // No time passes between the presses, however busy the machine is.
  await browser.run(`performance.now = () => 1_000; return true`);
  await press("lockdown");
  await browser.until(`document.querySelector('${key("lockdown-off")}') !== null`);
  const at = await browser.run(`const box = document.querySelector('${key("lockdown-off")}').getBoundingClientRect(); return document.elementFromPoint(box.x + 60, box.y + box.height / 2).closest("[data-key]").dataset.key`);
  assert.equal(at, "lockdown-off", "it is at the same place");
  await browser.again();
  await browser.keys(ENTER);
  await browser.settled();
  assert.deepEqual(await called("lock_down"), [{ on: true, end_sessions: false }]);
  // Another key in between, or a moved pointer, makes it a press of its own.
  await browser.keys(UP, ENTER);
  await browser.until(`made.calls.filter(([name]) => name === "lock_down").length === 2`);
});

test("a failure is shown even if its menu was closed or its page was left", async () => {
  await browser.go("home");
  await browser.run(`made.held = new Promise((free) => { made.free = free; }); return true`);
  await made(`made.fail.lock_down = "the record cannot be written"`);
  await press("lockdown-more");
  await press("lockdown-end");
  await press("lockdown-end:yes");
  await browser.press("#to-rules");
  await browser.run(`made.free(); return true`);
  await says("Not locked down: Lock down and end all sessions: the record cannot be written");
  await browser.until(`document.querySelector("#page-rules [role=alert]") !== null`);
  await press("failure:0");
  await browser.until(`document.querySelector("#page-rules .failures") === null`);
});

test("the window reports an unanswered request instead of showing an old state", async () => {
  await browser.go("home");
  // The page's clock runs ahead.
  await browser.run(`const real = window.setTimeout; window.setTimeout = (then, after, ...more) => real(then, after === 10_000 ? 0 : after, ...more); made.held = new Promise((free) => { made.free = free; }); return true`);
  await made("");
  await says("IronCurtain is not responding");
  await says("No answer for 10 seconds.");
  assert.equal(await browser.run(`document.querySelectorAll("#nav .count").length`), 0, "old counts");
  await browser.run(`made.free(); return true`);
  await says("Protected, except 3 servers");
});

test("protection is not claimed if the agents' settings cannot be read", async () => {
  await browser.go("home");
  await made(`made.sessions = made.sessions.slice(0, 1); made.found.forEach((one) => { one.entries = []; }); made.found[0].state = "unreadable"`);
  await browser.go("home");
  await browser.run(`made.sessions = made.sessions.slice(0, 1); made.found.forEach((one) => { one.entries = []; }); made.fail.found_clients = "the folder cannot be read"; made.change(); location.hash = "#agents"; return true`);
  await says("Searching for agents failed: the folder cannot be read");
  await browser.run(`location.hash = "#home"; return true`);
  await says("Agents' settings could not be checked, so servers there may bypass IronCurtain.");
  await browser.until(`document.querySelector("#state").innerText.includes("Not fully checked") || document.querySelector("#state").innerText.includes("Partly protected")`);
  assert.equal(await browser.run(`/^Protected$/m.test(document.querySelector("#state").innerText)`), false);
});

test("details and older entries are those of the chosen entry and filter, in whatever order the answers come", async () => {
  await browser.go("activity");
  await browser.run(`made.hold = { call_details: new Promise((free) => { made.free = free; }) }; return true`);
  await browser.press(`#page .line[data-line="1479"]`);
  await browser.run(`made.hold = {}; made.details = [["Rule", "second"]]; return true`);
  await browser.press(`#page .line[data-line="1480"]`);
  await says("second");
  await browser.run(`made.details = [["Rule", "first"]]; made.free(); return true`);
  await browser.settled();
  await says("second");
  await press("side:close");
  // Older entries of the previous filter arrive after those of the next one.
  await made(`made.log = Array.from({ length: 400 }, (_, n) => ({ ...made.log[0], seq: 9000 - n, decision: n % 2 ? "deny" : "allow", paths: ["/home/ada/d" + n + "/f"] }))`);
  await browser.until(`document.querySelector("#page .vlist .line").dataset.line === "9000"`);
  await browser.run(`made.hold = { activity: new Promise((free) => { made.free = free; }) }; const list = document.querySelector("#page .vlist"); list.scrollTop = list.scrollHeight; return true`);
  await browser.until(`made.calls.at(-1)[0] === "activity" && made.calls.at(-1)[1].before !== null`);
  await browser.run(`made.hold = {}; return true`);
  await press("verdict:deny");
  const size = `Number(document.querySelector("#page .vlist .line")?.ariaSetSize)`;
  await browser.until(`${size} === 200 && made.pending === 1`);
  await browser.run(`made.free(); return true`);
  await browser.settled();
  assert.equal(await browser.run(size), 200, "only denied entries");
});

test("a control shows the stored setting after it could not be saved, and keeps typed text during updates", async () => {
  await browser.go("settings");
  await made(`made.fail.change_settings = "the disk is full"`);
  await press("autostart");
  await says("Not saved: the disk is full");
  await choose("appearance", "system");
  await browser.until(`made.calls.filter(([name]) => name === "change_settings").length === 2`);
  await browser.settled();
  const shown = await browser.run(`["autostart", "appearance"].map((name) => document.querySelector('[data-key="' + name + '"]')).map((one) => one.type === "checkbox" ? one.checked : one.value)`);
  assert.deepEqual(shown, [false, await browser.run("made.settings.appearance")]);
  assert.equal(await browser.run(`[...document.querySelectorAll("#page .row")].filter((one) => one.querySelector("[role=alert]")).length`), 2, "each names its setting");
  await browser.run(`const field = document.querySelector('${key("keep_days")}'); field.focus(); field.select(); return true`);
  await browser.keys("4");
  await made("");
  await browser.settled();
  await browser.keys("2");
  assert.equal(await browser.run(`document.querySelector('${key("keep_days")}').value`), "42");
  // The answers may come in any order: changes are sent one after the other.
  await browser.run(`delete made.fail.change_settings; made.hold = { change_settings: new Promise((free) => { made.free = free; }) }; return true`);
  await choose("questions_per_minute", "7");
  await choose("questions_per_minute", "8");
  assert.equal((await called("change_settings")).filter(({ changes }) => changes.questions_per_minute === 8).length, 0);
  await browser.run(`made.hold = {}; made.free(); return true`);
  await browser.until(`made.settings.questions_per_minute === 8`);
});

test("a result is forgotten with its button: a file that changes again after Keep has to be decided about again", async () => {
  await browser.go("agents");
  await press("review:s1");
  const file = "/home/ada/src/app/Makefile";
  await press(`keep:s1:${file}`);
  await browser.until(`document.querySelector('${key(`keep:s1:${file}`)}') === null`);
  await made(`made.records[0].files.find((one) => one.path === "${file}").state = "left"`);
  await browser.until(`document.querySelector('button${key(`keep:s1:${file}`)}') !== null`);
  assert.equal(await browser.run(`document.querySelector('button${key(`quarantine:s1:${file}`)}') !== null`), true);
});

test("the form for a permission never changes its agent or server by itself", async () => {
  await browser.go("permissions");
  await press("gift");
  await says("Claude Code may read what you pick, through filesystem, for 1 hour.");
  // An agent that connects now comes first.
  await made(`made.clients.unshift({ key: "/tmp/aaa", name: "Aaa", servers: ["filesystem"], live: [], tools: {} })`);
  await browser.until(`document.querySelectorAll('${key("gift-client")} option').length > 1`);
  await says("Claude Code may read what you pick, through filesystem, for 1 hour.");
  await made(`made.clients = made.clients.filter((one) => one.name === "Aaa")`);
  await says("This agent is no longer known. Choose another one.");
  assert.equal(await browser.run(`document.querySelector('${key("pick-folder")}') === null`), true);
  await choose("gift-client", "/tmp/aaa");
  await says("Aaa may read what you pick, through filesystem, for 1 hour.");
});

test("a plan that is being replaced is not written", async () => {
  await browser.go("servers");
  await openAll();
  const limit = (server, value) => type(`limit:${server}:memory`, value);
  await limit("filesystem", "100");
  await press("limits-plan:filesystem");
  await browser.until(`document.querySelector('${key("limits-write:filesystem")}') !== null`);
  await browser.run(`made.hold = { plan_limits: new Promise((free) => { made.free = free; }) }; return true`);
  await limit("fetch", "200");
  await press("limits-plan:fetch");
  await press("limits-write:filesystem");
  await says("Not written: the plan has changed; review it again");
  assert.deepEqual(await called("write_limits"), []);
  await browser.run(`made.hold = {}; made.free(); return true`);
  await press("limits-write:fetch");
  await browser.until(`made.calls.filter(([name]) => name === "write_limits").length === 1`);
});

test("a verdict is for the call that was entered", async () => {
  await browser.go("rules");
  await browser.run(`document.querySelectorAll("details").forEach((one) => { one.open = true; }); made.hold = { explain: new Promise((free) => { made.free = free; }) }; return true`);
  await press("try-it");
  await type("try-arguments", "{}");
  await browser.run(`made.hold = {}; made.free(); return true`);
  await browser.settled();
  assert.equal(await browser.run(`document.querySelector("#page").innerText.includes("You would be asked")`), false);
  await press("try-it");
  await says("You would be asked");
});

test("two programs with one name are told apart, and the proof is not that of the other", async () => {
  await browser.go("agents");
  await made(`made.sessions.push({ ...made.sessions[0], id: "s9", client: { ...made.sessions[0].client, exe: "/tmp/claude" } })`);
  await says("2 different programs have this name.");
  await says("Verified: /tmp/claude");
  await says("Verified: /opt/claude/claude");
});

test("what a server's entry opens is shown with what the user granted", async () => {
  await browser.go("home");
  await made(`made.sessions = [{ ...made.sessions[2], roots: [], hosts: [], always: [{ path: "/", source: "the server's settings", grant: null, access: ["read"] }] }]; made.grants = []; made.found.forEach((one) => { one.entries = []; })`);
  await browser.until(`[...document.querySelectorAll(".map a title")].some((one) => one.textContent === "all unprotected files: read")`);
  assert.equal(await browser.run(`document.body.innerText.includes("scratch folder only")`), false);
  await browser.run(`location.hash = "#agents"; return true`);
  await says("all files that are not protected");
});

test("Skip to content keeps the page", async () => {
  await browser.go("permissions");
  await browser.run(`document.querySelector("#skip").focus(); return true`);
  await browser.keys(ENTER);
  await browser.until(`document.activeElement.id === "page"`);
  assert.equal(await browser.run("location.hash"), "#permissions");
});

test("a malformed address opens its page", async () => {
  await browser.go("agents/%E0%A4%A");
  await says("Claude Code");
});
