// Nothing moves if the desktop asks for reduced motion: no element has an animation or a transition, and none runs.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Browser } from "./browser.js";
import { key } from "./steps.js";

const PAGES = ["home", "activity/1479", "agents", "permissions", "servers", "servers/add", "servers/secrets", "servers/profiles", "rules", "settings", "welcome"];
const QUESTION = `made.waiting = [{ id: "q1", sentence: "Claude Code wants to read a.md", line: "read ~/a.md", session: "s1", client: "Claude Code", expires_ms: Date.now() + 90_000 }]; made.change(); return true`;
/** Returns the elements that would move, and the animations that run. */
const MOVING = `
  const found = new Set(document.getAnimations().map((one) => "runs: " + (one.animationName ?? one.transitionProperty)));
  for (const one of document.querySelectorAll("*"))
    for (const part of [null, "::before", "::after"]) {
      const style = getComputedStyle(one, part);
      const name = one.tagName + "." + one.getAttribute("class") + (part ?? "");
      if (style.animationName !== "none") found.add(name + " has the animation " + style.animationName);
      if (style.transitionDuration.split(", ").some((time) => parseFloat(time) > 0)) found.add(name + " has a transition");
      if (style.scrollBehavior === "smooth") found.add(name + " scrolls smoothly");
    }
  return [...found];`;

/** Opens each page and acts on it, and returns what moves there. */
async function movingParts(browser) {
  const found = {};
  const note = async (name) => {
    const parts = await browser.run(MOVING);
    if (parts.length > 0) found[name] = parts;
  };
  for (const page of PAGES) {
    await browser.go(page);
    await browser.run(QUESTION);
    await browser.settled();
    await browser.run(`document.querySelectorAll(".chevron[aria-expanded='false']").forEach((one) => one.click()); return true`);
    await browser.settled();
    await note(page);
  }
  await browser.go("settings");
  await browser.press(key("autostart"));
  await note("a switch");
  await browser.go("home");
  await browser.point(key("nav:rules"));
  await note("a link under the pointer");
  await browser.question();
  // A press that does not count is shown.
  await browser.run(`made.stage = { ...made.stage, ignored: 1 }; return true`);
  await browser.press("#allow");
  await browser.until(`document.querySelector("#allow.flash") !== null`);
  await note("a press that does not count");
  return found;
}

test("nothing moves with reduced motion", async () => {
  const browser = await Browser.open({ width: 1000, height: 700, hasAnimations: false });
  try {
    await browser.go("home");
    assert.equal(await browser.run(`matchMedia("(prefers-reduced-motion: reduce)").matches`), true);
    assert.deepEqual(await movingParts(browser), {});
  } finally {
    await browser.close();
  }
});

test("an open question, a switch and a press that does not count move otherwise", async () => {
  const browser = await Browser.open({ width: 1000, height: 700 });
  try {
    const found = await movingParts(browser);
    assert.ok(found.home.includes("runs: pulse"), JSON.stringify(found.home));
    assert.ok(found["a switch"].some((one) => one.endsWith("has a transition")));
    assert.ok(found["a press that does not count"].includes("runs: flash"));
  } finally {
    await browser.close();
  }
});
