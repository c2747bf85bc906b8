// Every page with the user's own palette (`forced-colors`), in Chromium, which is the app's engine on Windows. The engine on
// Linux has no such palette.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { chromium } from "../../target/npm/node_modules/playwright-core/index.mjs";
import { serve } from "./browser.js";

const PAGES = ["home", "activity/1479", "agents", "permissions", "servers", "servers/add", "servers/secrets", "servers/profiles", "rules", "settings", "welcome"];

let browser, server;
before(async () => {
  server = await serve();
  browser = await chromium.launch({ executablePath: "/usr/bin/chromium-headless-shell" });
});
after(async () => {
  await browser.close();
  server.close();
});

/** The page of each colour scheme. */
const pages = new Map();

/** Opens a page of the window, or another file, and waits until it shows `selector`. */
async function open(path, selector, colorScheme) {
  const page = pages.get(colorScheme) ?? (await browser.newPage({ viewport: { width: 1000, height: 700 }, colorScheme, forcedColors: "active" }));
  pages.set(colorScheme, page);
  await page.goto("about:blank");
  await page.goto(`http://127.0.0.1:${server.address().port}/${path}`);
  await page.locator(selector).first().waitFor();
  await page.waitForFunction(() => window.made.pending === 0);
  return page;
}

/** Returns the elements that would be hard to see. Runs in the page. */
function unseen() {
  const probe = document.body.appendChild(document.createElement("i"));
  const is = (name) => {
    probe.style.color = name;
    return getComputedStyle(probe).color;
  };
  const palette = new Set(["Canvas", "CanvasText", "LinkText", "ButtonText", "FieldText", "GrayText", "Highlight", "HighlightText"].map(is));
  const behind = new Set(["Canvas", "HighlightText"].map(is));
  probe.remove();
  const found = new Set();
  for (const one of document.querySelectorAll("body *")) {
    if (!one.checkVisibility()) continue;
    const style = getComputedStyle(one);
    const name = `${one.tagName}.${one.getAttribute("class")}`;
    for (const part of one instanceof SVGElement ? ["fill", "stroke"] : [])
      if (style[part] !== "none" && style[part] !== "rgba(0, 0, 0, 0)" && !palette.has(style[part])) found.add(`${part} of ${name} is ${style[part]}`);
    const hasText = [...one.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.data.trim());
    if (hasText && behind.has(style.color) && style.forcedColorAdjust !== "none") found.add(`the text of ${name} has the colour of its ground`);
  }
  return [...found];
}

for (const scheme of ["light", "dark"])
  for (const id of PAGES)
    test(`${id} keeps to the user's palette, ${scheme}`, async () => {
      const page = await open(`?theme=${scheme}#${id}`, `#page-${id.split("/")[0]} h1`, scheme);
      assert.deepEqual(await page.evaluate(unseen), []);
    });

for (const [path, selector] of [["parts.html", "h1"], ["consent.html", "#hint:not(:empty)"]])
  test(`${path} keeps to the user's palette`, async () => {
    const page = await open(path, selector, "dark");
    assert.deepEqual(await page.evaluate(unseen), []);
  });

test("the focus, the current page, a chosen entry and a state are told apart without colours", async () => {
  const page = await open("#activity/1479", ".line[aria-selected='true']", "dark");
  const edge = (selector, side) => page.locator(selector).first().evaluate((one, side) => { const style = getComputedStyle(one); return [style[`${side}Style`], parseFloat(style[`${side}Width`])]; }, side);
  assert.deepEqual(await edge("#nav [aria-current]", "borderTop"), ["solid", 1]);
  assert.deepEqual(await edge("#nav a:not([aria-current])", "borderTop"), ["none", 0]);
  assert.deepEqual(await edge(".line[aria-selected='true']", "outline"), ["solid", 2]);
  assert.equal((await edge(".line[aria-selected='false']", "outline"))[0], "none");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  assert.deepEqual(await edge(":focus-visible", "outline"), ["solid", 2]);
  const home = await open("#home", ".map", "dark");
  const shapes = await home.locator(".strip .allow, .strip .deny").evaluateAll((all) => Object.fromEntries(all.map((one) => [one.getAttribute("class"), getComputedStyle(one).fill])));
  assert.notEqual(shapes.allow, shapes.deny);
  const lines = await home.locator(".map .box").evaluateAll((all) => all.map((one) => getComputedStyle(one).strokeDasharray));
  assert.equal(new Set(lines).size, 2, "a way past the sandbox has another line");
});
