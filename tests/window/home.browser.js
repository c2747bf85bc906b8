// Home: the state, the map, what needs the user, lockdown and the strip of the last day.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Browser } from "./browser.js";
import { QUESTION, key, steps } from "./steps.js";

const [ENTER, LEFT, END] = ["\ue007", "\ue012", "\ue010"];

/** @type {Browser} */
let browser;
before(async () => (browser = await Browser.open({ width: 1000, height: 700 })));
after(() => browser.close());
const { called, press, says, made, sent } = steps(() => browser);
const text = (selector) => browser.run(`document.querySelector(${JSON.stringify(selector)}).innerText`);

test("the state names each case and is not claimed without an agent", async () => {
  await browser.go("home");
  await browser.until(`document.querySelector("#state").innerText.includes("Partly protected")`);
  await says("Protected, except 3 servers");
  await says("jira and maps (Claude Code) and photos (Cursor) can reach everything you can.");
  assert.equal(await browser.run(`document.querySelectorAll(".map .server.open").length`), 2, "one node for both servers of Claude Code");
  await made(`made.sessions = made.sessions.slice(0, 1); ${QUESTION}`);
  await says("Protected, except 2 servers");
  await made(`made.found[0].entries = made.found[0].entries.filter((entry) => !entry.past)`);
  await browser.run(`location.hash = "#agents"; return true`);
  await browser.until(`document.querySelector("#page-agents h1") !== null`);
  await browser.run(`location.hash = "#home"; return true`);
  await browser.until(`document.querySelector("#state").innerText.startsWith("Protected")`);
  assert.match(await text("#state"), /1 agent \u00b7 1 asking/);
  await made(`made.sessions = []; made.waiting = []`);
  await browser.until(`document.querySelector("#state").innerText.includes("No agent connected")`);
  await made(`made.clients = []; made.log = []`);
  await browser.until(`document.querySelector("#state").innerText.includes("Not protected")`);
  await press("welcome");
  await browser.until(`document.querySelector("#page-welcome h1") !== null`);
});

test("the map shows agents, sandboxes and reach, marks the way around, and leads to pages", async () => {
  await browser.go("home");
  const names = await browser.run(`[...document.querySelectorAll(".map a")].map((one) => one.querySelector("title").textContent)`);
  assert.deepEqual(names, ["Claude Code, can reach everything", "filesystem, in a sandbox", "/home/ada/src/app: read", "/home/ada/Documents/tax: read", "/home/ada/Pictures/2026: read", "fetch, in a sandbox", "docs.example.org", "jira and maps, bypass IronCurtain", "everything you can reach", "Cursor, can reach everything", "photos, stopped, not sandboxed", "everything you can reach"]);
  const words = await browser.run(`[...document.querySelectorAll(".map-words li")].map((one) => one.textContent.trim())`);
  assert.deepEqual(words, ["Claude Code uses filesystem, in a sandbox: ~/src/app: read; ~/Documents/tax: read; ~/Pictures/2026: read.", "Claude Code uses fetch, in a sandbox: docs.example.org.", "Claude Code uses jira and maps, bypassing IronCurtain: everything you can reach.", "Cursor uses photos, not sandboxed, stopped: everything you can reach."]);
  const sign = (kind) => browser.run(`document.querySelector(".map .server.${kind} use").getAttribute("href").slice(3)`);
  assert.deepEqual([await sign("sandboxed"), await sign("open")], ["shield-check", "triangle-alert"]);
  await made(QUESTION);
  await browser.until(`document.querySelector(".map .agent:has(.pulse) title")?.textContent === "Claude Code, asking you, can reach everything"`);
  await browser.run(`document.querySelector('${key("map:#servers/installed/photos")}').focus(); return true`);
  await browser.keys(ENTER);
  await browser.until(`location.hash === "#servers/installed/photos" && document.querySelector("#page-servers h1") !== null`);
});

test("many agents and folders are counted, not drawn", async () => {
  await browser.go("home");
  await made(`made.sessions = Array.from({ length: 9 }, (_, n) => ({ ...made.sessions[0], id: "m" + n, client: { ...made.sessions[0].client, name: "Agent " + n }, roots: Array.from({ length: 9 }, (_, m) => ({ path: "/home/ada/a/very/long/path/that/does/not/fit/d" + m, source: "rule \`work\`", grant: null, access: ["read"] })), hosts: [] }))`);
  await says("and 4 more agents");
  assert.deepEqual(await browser.run(`[document.querySelectorAll(".map .agent").length, document.querySelectorAll(".map .target").length]`), [6, 21], "the agent with a way around first");
  assert.equal(await browser.run(`document.querySelector(".map .target.more text").textContent`), "and 6 more");
  assert.equal(await browser.run(`document.querySelector(".map .target .file").textContent`), "\u2026/fit/d0");
});

test("what needs the user is reviewed only by the app and dismissed here", async () => {
  await browser.go("home");
  await says("Needs you (4)");
  await says("Not answered in time: denied. If the agent tries again, you are asked again.");
  await says("push main to https://git.example/ada/app.git <img src=x onerror=alert(1)>");
  await says("You allowed it. If the agent repeats exactly this call, it runs once.");
  // The window cannot approve a call. The app opens the dialog.
  await press("again:q8");
  await browser.until(`document.querySelector('${key("again:q8")}') === null`);
  assert.deepEqual(await called("ask_again"), [{ question: "q8" }]);
  await press("forget:q9");
  await browser.until(`document.querySelector('${key("forget:q9")}') === null`);
  assert.deepEqual(await called("forget_question"), [{ question: "q9" }]);
  await made(`${QUESTION}; made.servers.servers[2].suspended = { before: null, now: "/x", change: "it changed", grants: [], data: null, annotated: 0, secrets: [], found: "f" }`);
  await says("fetch is no longer the program you allowed");
  await made(`made.questions.missed = Array.from({ length: 8 }, (_, n) => ({ ...made.questions.missed[0], id: "m" + n }))`);
  await says("Needs you (12)");
  assert.equal(await browser.run(`document.querySelectorAll("#page .group .row").length`), 5);
  await press("needs:all");
  await browser.until(`document.querySelectorAll("#page .group .row").length === 12`);
  await press("show");
  assert.equal((await sent("show_question")).length, 1);
  await says("2 of Claude Code's servers bypass IronCurtain");
  await press("protect:claude-code");
  await browser.until(`location.hash === "#agents/Claude%20Code" && document.querySelector('${key("bypass:claude-code")}') !== null`);
  await browser.go("home");
  await made(`made.servers.servers[2].suspended = { before: null, now: "/x", change: "it changed", grants: [], data: null, annotated: 0, secrets: [], found: "f" }`);
  await press("decide:fetch");
  await browser.until(`location.hash === "#servers/installed/fetch"`);
});

test("a problem of this computer is named first, with the command that solves it", async () => {
  await browser.go("home");
  await made(`made.status.protection = "degraded"; made.status.troubles = ["This machine cannot sandbox servers, so none is started: AppArmor restricts user namespaces on this system. Run: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"]`);
  await says("Something is wrong");
  assert.equal((await text("#page [role=alert] p")).trim(), "This machine cannot sandbox servers, so none is started: AppArmor restricts user namespaces on this system.");
  assert.equal(await text("#page [role=alert] pre"), "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0");
  assert.equal(await text("#page [role=alert] + * h2, #page [role=alert] ~ .heading h2"), "Needs you (4)");
});

test("lockdown needs one click, can be ended, and only ending sessions asks for confirmation", async () => {
  await browser.go("home");
  await press("lockdown");
  await browser.until(`document.querySelector("#state").innerText.includes("Locked down") && document.activeElement?.dataset.key === "lockdown-off"`);
  await press("lockdown-off");
  await browser.until(`document.querySelector('${key("lockdown")}') !== null`);
  await press("lockdown-more");
  await press("lockdown-end");
  assert.equal((await called("lock_down")).length, 2);
  await press("lockdown-end:yes");
  await browser.until(`document.querySelector("#state").innerText.includes("Locked down")`);
  assert.deepEqual(await called("lock_down"), [{ on: true, end_sessions: false }, { on: false, end_sessions: false }, { on: true, end_sessions: true }]);
});

test("the strip says each quarter-hour, and one chosen by pointer or keys filters Activity", async () => {
  await browser.go("home");
  await made(`made.day.quarters[90] = [3, 1, 2]`);
  await browser.run(`document.querySelector('${key("strip")}').focus(); return true`);
  await browser.keys(END, ...Array.from({ length: 5 }, () => LEFT));
  await browser.until(`document.activeElement.ariaValueText?.endsWith("3 allowed, 1 asked, 2 denied")`);
  await browser.keys(ENTER);
  await browser.until(`location.hash === "#activity" && made.calls.some(([name, values]) => name === "activity" && values.wanted.from_ms > 0)`);
  const from = await browser.run(`made.day.from_ms + 90 * 900_000`);
  const wanted = (await called("activity")).findLast((one) => one.wanted.from_ms > 0).wanted;
  assert.deepEqual([wanted.from_ms, wanted.to_ms], [from, from + 900_000]);
  await press("clear:time");
  await browser.until(`document.querySelector('${key("clear:time")}') === null`);
  await browser.run(`document.querySelectorAll(".strip g")[10].dispatchEvent(new MouseEvent("click", { bubbles: true })); return true`);
  await browser.until(`document.querySelector('${key("clear:time")}') !== null`);
});
