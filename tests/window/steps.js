// What tests of pages do: press, type, move by keys, wait for words, and check accessibility.

import assert from "node:assert/strict";
import { findsNothing } from "./axe.js";

const [TAB, SHIFT] = ["\ue004", "\ue008"];
/** Upper bound for the controls of a page. */
const MOST = 260;

/** Returns the selector of a control. */
export const key = (name) => `[data-key=${JSON.stringify(name)}]`;

/** Returns the steps in a browser, which is opened later. */
export function steps(browser) {
  const called = (command) => browser().run(`made.calls.filter(([name]) => name === ${JSON.stringify(command)}).map(([, values]) => values)`);
  const at = () => browser().run(`const on = document.activeElement; return on.dataset.key ?? (on.id || on.tagName)`);
  return {
    /** Returns the values of the calls of a command. */
    called,
    /** Returns the focused element: its key, else its ID, or `BODY`. */
    at,
    /** Moves to a control with Tab, forward from the focus or backward. */
    async reach(name) {
      const control = `document.querySelector('${key(name)}')`;
      await browser().until(`${control} !== null`);
      const ahead = await browser().run(`const on = document.activeElement, to = ${control}; return on === to || (on.compareDocumentPosition(to) & (Node.DOCUMENT_POSITION_FOLLOWING | Node.DOCUMENT_POSITION_CONTAINED_BY)) !== 0`);
      for (let n = 0; n < MOST; n += 1) {
        if ((await at()) === name) return;
        await (ahead ? browser().keys(TAB) : browser().chord(SHIFT, TAB));
      }
      assert.fail(`${name} is unreachable by Tab; the focus is on ${await at()}`);
    },
    press: (name) => browser().press(key(name)),
    says: (text) => browser().until(`document.querySelector("#page").innerText.includes(${JSON.stringify(text)})`),
    /** Changes the fake app and draws the page. */
    made: (script) => browser().run(`${script}; made.change(); return true`),
    /** Types into a field. */
    type: (field, text) => browser().run(`const field = document.querySelector('${key(field)}'); field.value = ${JSON.stringify(text)}; field.dispatchEvent(new Event("input")); return true`),
    /** Chooses an option. */
    choose: (field, to) => browser().run(`const control = document.querySelector('${key(field)}'); control.value = ${JSON.stringify(to)}; if (control.value !== ${JSON.stringify(to)}) throw new Error("no such choice"); control.dispatchEvent(new Event("change")); return true`),
    /** Waits for a call of a command and returns its values. */
    async sent(command) {
      await browser().until(`made.calls.some(([name]) => name === ${JSON.stringify(command)})`);
      return called(command);
    },
    /** Checks that axe finds nothing on the page with everything open. */
    async looksAccessible() {
      await browser().run(`document.querySelectorAll("details").forEach((one) => { one.open = true; }); return true`);
      await findsNothing(browser());
    },
  };
}
