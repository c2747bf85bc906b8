// The frame, Home, Activity and setup in the app's web engine with a fake app.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { Browser } from "./browser.js";
import { key, steps } from "./steps.js";
import { FRAME } from "../../ui/texts/frame.js";

const [ENTER, DOWN, UP, LEFT, END, ESCAPE] = ["\ue007", "\ue015", "\ue013", "\ue012", "\ue010", "\ue00c"];
/** Maximum number of words on a page before anything is opened, without headings and data. */
const MOST_WORDS = 120;

/** @type {Browser} */
let browser;
before(async () => (browser = await Browser.open({ width: 1000, height: 700 })));
after(() => browser.close());
const { called, press, says, made, type, choose, sent, looksAccessible } = steps(() => browser);

const QUESTION = `made.waiting = [{ id: "q1", sentence: "Claude Code wants to read a.md", line: "read ~/a.md", session: "s1", client: "Claude Code", expires_ms: Date.now() + 90_000 }]`;
const text = (selector) => browser.run(`document.querySelector(${JSON.stringify(selector)}).innerText`);

for (const theme of ["light", "dark"]) {
  test(`axe finds nothing with a question, a menu, a selected entry and an open run, ${theme}`, async () => {
    await browser.go("home", { theme });
    await made(QUESTION);
    await says("Claude Code wants to read a.md");
    await press("lockdown-more");
    await looksAccessible();
    await browser.go("activity/1479", { theme });
    await says("ask-before-reading");
    await press("filter");
    await looksAccessible();
    await browser.sheet({ theme });
    await looksAccessible();
  });
}

test("the links are painted before the app has answered, and are never replaced", async () => {
  const shell = readFileSync(new URL("../../ui/index.html", import.meta.url), "utf8");
  const [, painted] = shell.match(/<ul id="nav">([^]*?)<\/ul>/);
  const { welcome, ...names } = FRAME.pages;
  assert.deepEqual([...painted.matchAll(/href="#([a-z]+)"[^>]*><svg.*<\/svg>([^<]+)</g)].map((found) => found.slice(1, 3)), Object.entries(names));
  await browser.go("home");
  await browser.until(`document.querySelector("#to-home [aria-label='needs you']") !== null && document.querySelector("#to-home").ariaCurrent === "page"`);
  const now = await browser.run(`const nav = document.querySelector("#nav").cloneNode(true); nav.querySelectorAll(".mark").forEach((one) => one.replaceChildren()); nav.querySelectorAll("a").forEach((one) => one.removeAttribute("aria-current")); return nav.innerHTML`);
  assert.equal(now, painted);
});

test("every icon is drawn from the sprite", async () => {
  await browser.go("home");
  const empty = await browser.run(`[...document.querySelectorAll("svg:has(> use)")].filter((one) => one.checkVisibility() && one.querySelector("use").getBBox().width === 0).length`);
  assert.equal(empty, 0);
});

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

test("a menu closes by Escape, a press elsewhere, and when the focus leaves", async () => {
  await browser.go("home");
  const isOpen = () => browser.run(`document.querySelector(".menu-items") !== null`);
  await press("lockdown-more");
  await browser.until(`document.querySelector(".menu-items") !== null`);
  const inside = await browser.run(`const box = document.querySelector(".menu-items").getBoundingClientRect(), at = document.elementFromPoint(box.right - 4, box.top + 8); return [box.left >= 0, box.top >= 0, box.right <= innerWidth, box.bottom <= innerHeight, at.closest(".menu-items") !== null]`);
  assert.deepEqual(inside, [true, true, true, true, true], "the frame does not cut it off");
  await browser.keys(DOWN);
  assert.equal(await browser.run(`document.activeElement.dataset.key`), "lockdown-end");
  await browser.keys(ESCAPE);
  await browser.settled();
  assert.equal(await isOpen(), false);
  assert.equal(await browser.run(`document.activeElement.dataset.key`), "lockdown-more");
  await press("lockdown-more");
  await browser.until(`document.querySelector(".menu-items") !== null`);
  await browser.press("#page h1");
  await browser.until(`document.querySelector(".menu-items") === null`);
  assert.deepEqual(await called("lock_down"), []);
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

test("an entry is one line, runs are collapsed, and details show everything on record", async () => {
  await browser.go("activity");
  const lines = await browser.run(`[...document.querySelectorAll("#page .vlist .line")].map((one) => [one.offsetHeight, one.innerText.replace(/\\s+/g, " ").replaceAll("/ ", "/").trim()])`);
  assert.deepEqual(lines.map(([height]) => height), lines.map(() => 32));
  assert.equal(lines.length, 7);
  const has = (part) => assert.ok(lines.some(([, words]) => words.includes(part)), `${part}: ${JSON.stringify(lines)}`);
  has("read ~/Documents/tax/2026/summary.md");
  has("4 reads in ~/src/app");
  has("The server filesystem started");
  const marks = await browser.run(`Object.fromEntries([...document.querySelectorAll("#page .vlist .line")].map((one) => [one.dataset.line, one.querySelector(".mark .unseen").textContent]))`);
  assert.deepEqual([marks[1480], marks[1476]], ["Allowed, ", "Allowed, but failed, "], "a call that succeeded, and one that failed");
  await browser.press(`#page .line[data-line="-1471"]`);
  await browser.until(`document.querySelectorAll("#page .vlist .line").length === 11`);
  await browser.press(`#page .line[data-line="1479"]`);
  await says("ask-before-reading");
  assert.deepEqual(await called("call_details"), [{ seq: 1479 }]);
  await made(`made.fail.call_details = "the log cannot be read"`);
  await browser.press(`#page .line[data-line="1480"]`);
  await says("Reading the entry failed: the log cannot be read");
  await press("side:close");
  await browser.until(`document.querySelector("#page .side") === null && document.activeElement.dataset.key === "log"`);
});

test("entries are reached by keys: one tab stop, arrows, Enter, Escape", async () => {
  await browser.go("activity");
  await browser.run(`document.querySelector('${key("log")}').focus(); return true`);
  const at = () => browser.run(`document.getElementById(document.activeElement.getAttribute("aria-activedescendant"))?.dataset.line`);
  await browser.keys(DOWN, DOWN, UP);
  assert.equal(await at(), "1479");
  await browser.keys(ENTER);
  await says("ask-before-reading");
  await browser.keys(ESCAPE);
  await browser.until(`document.querySelector("#page .side") === null`);
  await browser.keys(END);
  assert.equal(await at(), "1470");
  await browser.keys(UP, ENTER);
  await browser.until(`document.querySelectorAll("#page .vlist .line").length === 11`);
});

test("the record is filtered by words, verdict, server, time and folder, and failures are shown", async () => {
  await browser.go("activity");
  const wanted = async () => (await called("activity")).at(-1).wanted;
  await type("find", "id_ed25519");
  await browser.until(`document.querySelectorAll("#page .vlist .line").length === 1`);
  await type("find", "");
  await press("verdict:deny");
  await browser.until(`document.querySelectorAll("#page .vlist .line").length === 2`);
  await press("verdict:deny");
  await press("filter");
  await browser.until(`document.querySelector('${key("server")}') !== null`);
  await choose("server", "photos");
  await says("No entry matches.");
  await type("path", "~/src");
  await choose("time", "1");
  await browser.until(`made.calls.findLast(([name]) => name === "activity")[1].wanted.path === "~/src" && made.calls.findLast(([name]) => name === "activity")[1].wanted.from_ms > 0`);
  assert.deepEqual({ ...(await wanted()), from_ms: 0 }, { text: "", decision: "", server: "photos", client: "", path: "~/src", from_ms: 0, to_ms: 0 });
  await press("clear-all");
  await browser.until(`document.querySelectorAll("#page .vlist .line").length === 7`);
  await made(`made.fail.activity = "the log cannot be read"`);
  await says("Searching the record failed: the log cannot be read");
});

test("the list follows new entries, keeps its place, and stands still while paused", async () => {
  await browser.go("activity");
  const add = (n) => made(`made.log = [{ ...made.log[0], seq: ${n}, decision: "deny", paths: ["/home/ada/n${n}"] }, ...made.log]`);
  const first = () => browser.run(`document.querySelector("#page .vlist .line").dataset.line`);
  await add(1481);
  await browser.until(`document.querySelector("#page .vlist .line").dataset.line === "1481"`);
  await press("live");
  await add(1482);
  await browser.settled();
  assert.equal(await first(), "1481", "paused");
  await press("live");
  await browser.until(`document.querySelector("#page .vlist .line").dataset.line === "1482"`);
  // Alternating verdicts, so that no entries are collapsed.
  await made(`made.log = Array.from({ length: 400 }, (_, n) => ({ ...made.log[0], seq: 9000 - n, decision: n % 2 ? "deny" : "allow", paths: ["/home/ada/f" + n] }))`);
  await browser.until(`document.querySelector("#page .vlist .line").dataset.line === "9000"`);
  await browser.run(`document.querySelector("#page .vlist").scrollTop = 3200; return true`);
  await browser.until(`document.querySelector('#page .line[data-line="8900"]') !== null`);
  const place = () => browser.run(`Math.round(document.querySelector('#page .line[data-line="8900"]').getBoundingClientRect().top)`);
  const before = await place();
  await add(9001);
  await browser.until(`made.calls.length > 0 && document.querySelector("#page .vlist-space").offsetHeight === 32 * (document.querySelector("#page .line").ariaSetSize | 0)`);
  await browser.settled();
  assert.equal(await place(), before, "nothing moves under the eyes");
});

test("an entry becomes a rule, and the record is checked and exported", async () => {
  await browser.go("activity");
  await press("record");
  await press("check");
  await says("1,482 entries, all unchanged");
  // A later check that fails leaves no claim behind.
  await made(`made.fail.check_log = "the record cannot be read"`);
  await press("check");
  await browser.until(`!document.querySelector("#page").innerText.includes("all unchanged")`);
  await press("export:csv");
  await says("~/record.csv");
  assert.equal((await called("export_activity")).length, 1);
  await browser.press(`#page .line[data-line="1479"]`);
  await press("rule:1479");
  await browser.until(`location.hash === "#rules" && document.querySelector("#page-rules h1") !== null`);
});

test("ten thousand entries scroll smoothly", async () => {
  const plain = await Browser.open({ width: 1000, height: 700 });
  try {
    await plain.go("activity");
    await plain.run(`made.log = Array.from({ length: 10000 }, (_, n) => ({ ...made.log[0], seq: 20000 - n, decision: n % 3 ? "allow" : "deny", paths: ["/home/ada/d" + n + "/f" + n] })); made.change(); return true`);
    const all = `Number(document.querySelector("#page .line")?.getAttribute("aria-setsize"))`;
    for (let loaded = 0; loaded < 10_000; ) {
      await plain.run(`const list = document.querySelector("#page .vlist"); list.scrollTop = list.scrollHeight; return true`);
      await plain.until(`${all} > ${loaded}`);
      loaded = await plain.run(all);
    }
    assert.ok((await plain.run(`document.querySelectorAll("#page .vlist .line").length`)) < 60, "only those in view exist");
    // Measures the time between frames, and each frame's work from scrolling to layout.
    const [frames, work] = await plain.wait(`
      const list = document.querySelector("#page .vlist"), frames = [], work = [];
      list.scrollTop = 0;
      let before = 0;
      const step = (now) => {
        if (before > 0) frames.push(now - before);
        before = now;
        const began = performance.now();
        list.scrollTop += 96;
        list.dispatchEvent(new Event("scroll"));
        void list.offsetHeight;
        work.push(performance.now() - began);
        if (frames.length < 400) requestAnimationFrame(step); else done([frames, work].map((times) => times.sort((a, b) => a - b)));
      };
      requestAnimationFrame(step);`);
    const at = (times, share) => times[Math.floor(times.length * share)].toFixed(1);
    const shares = (times) => `median ${at(times, 0.5)} ms, 95th percentile ${at(times, 0.95)} ms`;
    console.log(`scrolling 10,000 entries by 3 lines a frame: frame time ${shares(frames)}; of it scripts and layout ${shares(work)}`);
    assert.ok(Number(at(work, 0.5)) < 16, at(work, 0.5));
  } finally {
    await plain.close();
  }
});

test("setup claims no protection, can be skipped at each step, and shows what was refused and allowed", async () => {
  await browser.go("welcome");
  assert.equal(await browser.run(`document.querySelector("nav.frame").checkVisibility()`), false, "no navigation");
  await made(`made.sessions = []`);
  await says("Nothing is protected until an agent is connected.");
  await press("step:next");
  await press("connect:cursor");
  await says("<b>not markup</b>");
  assert.deepEqual(await called("write_client"), []);
  await press("step:next");
  await says("Protected servers run in a sandbox");
  await says("jira");
  assert.equal(await browser.run(`document.querySelector("#page").innerText.includes("Cursor")`), false);
  await press("step:next");
  await press("folder-read");
  await says("Agents may read in /home/ada/Documents/recipes, without asking.");
  await press("step:next");
  await press("practise");
  await says("Denied. A real request would have been refused.");
  await press("look");
  await says("Refused. You have 3 names in ~/.ssh; it saw none.");
  await made(`made.look = { ...made.look, seen: 3, said: "" }`);
  await press("look");
  await says("Not refused: it saw 3 names of 3");
  await press("step:leave");
  await browser.until(`location.hash === "#home" && made.calls.some(([name]) => name === "finish_first_steps")`);
});

test("Home, Activity and each first step have at most 120 words besides headings and data", async () => {
  const words = () => browser.run(`
    const copy = document.querySelector("#page").cloneNode(true);
    copy.querySelectorAll("h1, h2, h3, svg, .path, code, pre, dd, time, .line, .map-words, .unseen, .legend, .agent-icon, [class*=count]").forEach((one) => one.remove());
    return copy.textContent.split(/\\s+/).filter((word) => /\\p{L}/u.test(word)).length`);
  for (const page of ["home", "activity", "welcome"]) {
    await browser.go(page);
    for (let step = 0; step < (page === "welcome" ? 5 : 1); step += 1) {
      if (step > 0) await press("step:next");
      await browser.settled();
      assert.ok((await words()) <= MOST_WORDS, `${page} ${step}: ${await words()}`);
    }
  }
});

test("controls of the front pages are at least 24 by 24 pixels", async () => {
  for (const page of ["home", "activity", "welcome"]) {
    await browser.go(page);
    const small = await browser.run(`[...document.querySelectorAll("button, a[href]:not(.skip), input, select, [role=slider]")].filter((one) => one.checkVisibility() && !one.closest("p")).map((one) => [one.dataset.key ?? one.outerHTML.slice(0, 80), one.getBoundingClientRect()]).filter(([, box]) => box.width > 0 && (box.height < 23.5 || box.width < 23.5)).map(([name, box]) => name + " " + Math.round(box.width) + "x" + Math.round(box.height))`);
    assert.deepEqual(small, [], page);
  }
});

test("an unreachable daemon is reported without claiming that agents are denied", async () => {
  await browser.go("home");
  await made(`made.fail.snapshot = "it is gone"`);
  await says("IronCurtain is not responding");
  assert.equal(await browser.run(`document.body.innerText.includes("denied")`), false);
});

test("the frame stays in view: only the page scrolls", async () => {
  for (const page of ["home", "activity", "agents", "permissions", "servers", "rules", "settings"]) {
    await browser.go(page);
    const [document, window] = await browser.run(`[document.documentElement.scrollHeight, innerHeight]`);
    assert.equal(document, window, page);
  }
});

test("idle window draws nothing", async () => {
  await browser.go("home");
  const drawn = await browser.wait(`
    const real = window.requestAnimationFrame; let n = 0;
    window.requestAnimationFrame = (then) => { n += 1; return real(then); };
    setTimeout(() => { window.requestAnimationFrame = real; done(n); }, 3000);`);
  assert.equal(drawn, 0);
});
