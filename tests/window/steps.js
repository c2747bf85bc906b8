// What tests of pages do: press, type, wait for words, and check accessibility.

import { findsNothing } from "./axe.js";

/** Returns the selector of a control. */
export const key = (name) => `[data-key=${JSON.stringify(name)}]`;

/** Returns the steps in a browser, which is opened later. */
export function steps(browser) {
  const called = (command) => browser().run(`made.calls.filter(([name]) => name === ${JSON.stringify(command)}).map(([, values]) => values)`);
  return {
    /** Returns the values of the calls of a command. */
    called,
    press: (name) => browser().press(key(name)),
    says: (text) => browser().until(`document.querySelector("#page").innerText.includes(${JSON.stringify(text)})`),
    /** Changes the fake app and draws the page. */
    made: (script) => browser().run(`${script}; made.change(); return true`),
    /** Types into a field. */
    type: (field, text) => browser().run(`const field = document.querySelector('${key(field)}'); field.value = ${JSON.stringify(text)}; field.dispatchEvent(new Event("input")); return true`),
    /** Chooses an option. */
    choose: (field, to) => browser().run(`const control = document.querySelector('${key(field)}'); control.value = ${JSON.stringify(to)}; control.dispatchEvent(new Event("change")); return true`),
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
