// Steps for page tests: pressing, typing, moving by keyboard, opening, waiting for text, and checking accessibility.

import assert from "node:assert/strict";
import { findsNothing } from "./axe.js";

const [TAB, SHIFT] = ["\ue004", "\ue008"];
/** Upper bound for the number of controls on a page. */
const MAX_STEPS = 260;

/** Script that adds a question to the fake app. */
export const QUESTION = `made.waiting = [{ id: "q1", sentence: "Claude Code wants to read a.md", line: "read ~/a.md", session: "s1", client: "Claude Code", expires_ms: Date.now() + 90_000 }]`;

/** Returns the selector of a control. */
export const key = (name) => `[data-key=${JSON.stringify(name)}]`;

/** Opens everything on the page that can be opened. */
export async function openAll(browser) {
  await browser.run(`document.querySelectorAll(".chevron[aria-expanded='false']").forEach((one) => one.click()); return true`);
  await browser.settled();
  await browser.run(`document.querySelectorAll("details").forEach((one) => { one.open = true; }); return true`);
}

/** Returns the steps for a browser that is opened later. */
export function steps(browser) {
  const called = (command) => browser().run(`made.calls.filter(([name]) => name === ${JSON.stringify(command)}).map(([, values]) => values)`);
  const at = () => browser().run(`const on = document.activeElement; return on.dataset.key ?? (on.id || on.tagName)`);
  return {
    /** Returns the arguments of a command's calls. */
    called,
    /** Returns the focused element: its key, else its ID, or `BODY`. */
    at,
    /** Moves the focus to a control with Tab or Shift+Tab. */
    async reach(name) {
      const control = `document.querySelector('${key(name)}')`;
      await browser().until(`${control} !== null`);
      // Another key, so that the next press does not count as the second one of a double press.
      await browser().keys(SHIFT);
      const ahead = await browser().run(`const on = document.activeElement, to = ${control}; return on === to || (on.compareDocumentPosition(to) & (Node.DOCUMENT_POSITION_FOLLOWING | Node.DOCUMENT_POSITION_CONTAINED_BY)) !== 0`);
      for (let n = 0; n < MAX_STEPS; n += 1) {
        if ((await at()) === name) return;
        await (ahead ? browser().keys(TAB) : browser().chord(SHIFT, TAB));
      }
      assert.fail(`${name} is unreachable by Tab; the focus is on ${await at()}`);
    },
    press: (name) => browser().press(key(name)),
    says: (text) => browser().until(`document.querySelector("#page").innerText.includes(${JSON.stringify(text)})`),
    /** Changes the fake app and redraws the page. */
    made: (script) => browser().run(`${script}; made.change(); return true`),
    /** Types into a field. */
    type: (field, text) => browser().run(`const field = document.querySelector('${key(field)}'); field.value = ${JSON.stringify(text)}; field.dispatchEvent(new Event("input")); return true`),
    /** Chooses an option. */
    choose: (field, to) => browser().run(`const control = document.querySelector('${key(field)}'); control.value = ${JSON.stringify(to)}; if (control.value !== ${JSON.stringify(to)}) throw new Error("no such choice"); control.dispatchEvent(new Event("change")); return true`),
    /** Waits for a call of a command and returns its arguments. */
    async sent(command) {
      await browser().until(`made.calls.some(([name]) => name === ${JSON.stringify(command)})`);
      return called(command);
    },
    /** Checks that axe finds no problems on the page with every `<details>` open. */
    async looksAccessible() {
      await browser().run(`document.querySelectorAll("details").forEach((one) => { one.open = true; }); return true`);
      await findsNothing(browser());
    },
    /** Checks that axe finds no problems on the page with everything open. */
    async looksAccessibleExpanded() {
      await openAll(browser());
      await findsNothing(browser());
    },
  };
}
