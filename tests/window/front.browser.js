// The frame around the pages, setup, and what Home, Activity and setup have in common.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { Browser } from "./browser.js";
import { QUESTION, steps } from "./steps.js";
import { FRAME } from "../../ui/texts/frame.js";

const [DOWN, ESCAPE] = ["\ue015", "\ue00c"];
/** Maximum number of words on a page before anything is opened, without headings and data. */
const MOST_WORDS = 120;

/** @type {Browser} */
let browser;
before(async () => (browser = await Browser.open({ width: 1000, height: 700 })));
after(() => browser.close());
const { called, press, says, made, looksAccessible } = steps(() => browser);

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

test("Home works and names the problem if the other pages cannot be loaded", async () => {
  await browser.without("/pages/all.js", async () => {
    await browser.go("home");
    await says("The other pages could not be loaded.");
    await says("Claude Code");
    // An address of another page leads to Home.
    await browser.run(`location.hash = "#settings"`);
    await browser.until(`document.querySelector("#page-home h1") !== null && document.querySelector("#page-settings h1") === null`);
  });
  await browser.go("settings");
});

test("every icon is drawn from the sprite", async () => {
  await browser.go("home");
  const empty = await browser.run(`[...document.querySelectorAll("svg:has(> use)")].filter((one) => one.checkVisibility() && one.querySelector("use").getBBox().width === 0).length`);
  assert.equal(empty, 0);
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
  // Home is drawn again once the other pages are loaded, so this begins on one of them.
  await browser.go("settings");
  await browser.run(`location.hash = "#home"`);
  await browser.until(`document.querySelector("#page-home h1") !== null`);
  await browser.settled();
  const drawn = await browser.wait(`
    const real = window.requestAnimationFrame; let n = 0;
    window.requestAnimationFrame = (then) => { n += 1; return real(then); };
    setTimeout(() => { window.requestAnimationFrame = real; done(n); }, 3000);`);
  assert.equal(drawn, 0);
});
