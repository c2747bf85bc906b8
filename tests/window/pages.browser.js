// Every page: accessibility, keyboard, text size, untrusted text, empty states, and drawing time of long lists.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Browser } from "./browser.js";
import { key, openAll, steps } from "./steps.js";

const PAGES = ["home", "activity", "agents", "permissions", "servers", "servers/add", "servers/secrets", "servers/profiles", "rules", "settings", "welcome"];
const TAB = "\ue004";

/** @type {Browser} */
let browser;
before(async () => (browser = await Browser.open()));
after(() => browser.close());
const { press, says, made, looksAccessibleExpanded } = steps(() => browser);

for (const theme of ["light", "dark"]) {
  for (const page of PAGES) {
    test(`axe finds nothing on ${page}, ${theme}, with everything open`, async () => {
      await browser.go(page, { theme });
      await looksAccessibleExpanded();
    });
  }
}

test("every control of every page has a name and is reachable by keyboard", async () => {
  for (const page of PAGES) {
    await browser.go(page);
    await openAll(browser);
    const wanted = await browser.run(`[...document.querySelectorAll("#page button:not(:disabled), #page select, #page input, #page textarea, #page summary, #page a")].filter((one) => one.checkVisibility()).length`);
    await browser.run(`document.querySelector("#page").focus(); window.reached = new Set(); document.addEventListener("focusin", ({ target }) => { if (target.closest("#page") && target.matches("button, select, input, textarea, summary, a")) reached.add(target); }); return true`);
    // Each scrollable text box is one tab stop.
    await browser.keys(...Array.from({ length: wanted + 40 }, () => TAB));
    assert.ok((await browser.run("reached.size")) >= wanted, `${page}: ${await browser.run("reached.size")} of ${wanted}`);
    const nameless = await browser.run(`[...document.querySelectorAll("#page button, #page select, #page input, #page textarea")].filter((one) => !(one.getAttribute("aria-label") || one.textContent.trim() || one.closest("label")?.textContent.trim())).map((one) => one.outerHTML)`);
    assert.deepEqual(nameless, [], page);
  }
});

test("double text size clips nothing and causes no horizontal scrolling", async () => {
  const narrow = await Browser.open({ width: 640, height: 480 });
  try {
    for (const page of PAGES) {
      await narrow.go(page);
      await openAll(narrow);
      const wide = await narrow.run(`const wide = [...document.querySelectorAll("#page *")].filter((one) => one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.outerHTML.slice(0, 120)); return [document.documentElement.scrollWidth - innerWidth, wide.slice(0, 3)];`);
      assert.deepEqual(wide, [Math.min(wide[0], 0), []], page);
    }
  } finally {
    await narrow.close();
  }
});

test("unticked checkbox has a visible border in both themes", async () => {
  for (const theme of ["light", "dark"]) {
    await browser.go("permissions", { theme });
    await press("select");
    await browser.until(`document.querySelector('${key("select:g1")}') !== null`);
    const [drawn, edge] = await browser.run(`const box = document.querySelector('${key("select:g1")}'), probe = document.createElement("i"); probe.style.color = "var(--edge)"; box.after(probe); return [getComputedStyle(box), getComputedStyle(probe)].map((style, at) => at === 0 ? [style.appearance, style.borderTopColor, style.borderTopWidth] : style.color)`);
    assert.deepEqual(drawn, ["none", edge, "1px"], theme);
  }
});

test("these pages have at most 120 words besides headings and data, and controls of at least 24 by 24 pixels", async () => {
  for (const page of ["agents", "permissions", "servers", "servers/add", "servers/secrets", "servers/profiles", "rules", "settings"]) {
    await browser.go(page);
    const words = await browser.run(`
      const copy = document.querySelector("#page").cloneNode(true);
      copy.querySelectorAll("h1, h2, h3, svg, .path, code, pre, dd, time, .unseen, .agent-icon, [class*=count], option:not([selected])").forEach((one) => one.remove());
      return copy.textContent.split(/\\s+/).filter((word) => /\\p{L}/u.test(word)).length`);
    console.log(`${page}: ${words} words`);
    assert.ok(words <= 120, `${page}: ${words}`);
    await openAll(browser);
    const small = await browser.run(`[...document.querySelectorAll("#page button, #page a[href], #page input, #page select, #page summary")].filter((one) => one.checkVisibility() && !one.closest("p, .facts, dd") && !one.matches(".tick input")).map((one) => [one.dataset.key ?? one.outerHTML.slice(0, 80), one.getBoundingClientRect()]).filter(([, box]) => box.width > 0 && (box.height < 23.5 || box.width < 23.5)).map(([name, box]) => name + " " + Math.round(box.width) + "x" + Math.round(box.height))`);
    assert.deepEqual(small, [], page);
  }
});

test("text from agents and servers never becomes an element", async () => {
  for (const page of PAGES) {
    await browser.go(page);
    assert.equal(await browser.run(`document.querySelectorAll("#page img, #page b > b, #page script").length`), 0, page);
  }
  await browser.go("permissions");
  await says("<img src=x onerror=alert(1)>");
});

test("without agents, permissions or servers each page says what to do first", async () => {
  await browser.go("agents");
  await made(`made.sessions = []; made.clients = []; made.records = []; made.quarantine = []; made.grants = []; made.servers.servers = []; made.removed = []; made.found.forEach((one) => { one.state = "not-connected"; one.entries = []; })`);
  await browser.run(`location.hash = "#servers"; return true`);
  await says("No server is set up yet.");
  await looksAccessibleExpanded();
  await browser.run(`location.hash = "#permissions"; return true`);
  await says("Connect an agent first.");
  await press("connect");
  await says("No agent has connected yet.");
  await press("first");
  await browser.until(`document.activeElement.dataset.key === "connect:claude-code"`);
  await looksAccessibleExpanded();
});

/** Returns the shortest of several drawing times in milliseconds, which other load affects least. */
const drawing = (script) => browser.wait(`
  const times = [], real = window.requestAnimationFrame;
  window.requestAnimationFrame = (then) => real((now) => { const began = performance.now(); then(now); void document.body.offsetHeight; times.push(performance.now() - began); });
  let left = 8;
  const again = () => { ${script} left -= 1; if (left > 0) setTimeout(again, 250); else { window.requestAnimationFrame = real; done(Math.min(...times)); } };
  again();`);

test("drawing ten thousand calls and a thousand grants takes under 50 ms", async () => {
  await browser.go("permissions");
  await made(`made.grants = Array.from({ length: 1000 }, (_, n) => ({ ...made.grants[0], id: "row" + n, path: "/home/ada/d" + (n % 40) + "/f" + n })); made.log = Array.from({ length: 10000 }, (_, n) => ({ ...made.log[0], seq: 20000 - n, paths: ["/home/ada/f" + n] }))`);
  await says("1 to 100 of 1,000");
  const grants = await drawing(`made.grants = made.grants.map((one) => ({ ...one, uses: one.uses + 1 })); made.change();`);
  await browser.run(`location.hash = "#activity"; return true`);
  await browser.until(`document.querySelector(".vlist .line") !== null`);
  const calls = await drawing(`made.log = [{ ...made.log[0], seq: made.log[0].seq + 1 }, ...made.log]; made.change();`);
  console.log(`drawing took ${grants.toFixed(1)} ms with 1,000 grants, ${calls.toFixed(1)} ms with 10,000 calls`);
  assert.ok(grants < 50 && calls < 50, `${grants} ${calls}`);
});
