// Activity: entries and their details, keys, search, the live list, and scrolling of long lists.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Browser } from "./browser.js";
import { key, steps } from "./steps.js";

const [ENTER, DOWN, UP, END, ESCAPE] = ["\ue007", "\ue015", "\ue013", "\ue010", "\ue00c"];

/** @type {Browser} */
let browser;
before(async () => (browser = await Browser.open({ width: 1000, height: 700 })));
after(() => browser.close());
const { called, press, says, made, type, choose } = steps(() => browser);

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
