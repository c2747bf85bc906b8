// Contrast of every colour pair used in the window, in both themes. Inactive windows use the same colours.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

const UI = new URL("../../ui/", import.meta.url);
const THEME = readFileSync(new URL("theme.css", UI), "utf8");
const GROUNDS = ["ground", "surface", "raised"];
/** Text colours. */
const WORDS = ["ink", "quiet", "good", "asks", "bad", "accent"];

/** Returns the colours defined in a theme's block. */
function colours(start) {
  const at = THEME.indexOf(start);
  assert.notEqual(at, -1, start);
  const block = THEME.slice(at, THEME.indexOf("}", at));
  return Object.fromEntries([...block.matchAll(/--([a-z-]+): (#[0-9a-f]{6})/g)].map(([, name, value]) => [name, value]));
}

const LIGHT = colours(":root {");
const DARK = colours(':root[data-theme="dark"]');
// Both themes share the agents' colours.
const THEMES = { light: LIGHT, dark: { ...LIGHT, ...DARK } };
const AGENTS = Object.keys(LIGHT).filter((name) => name.startsWith("agent-"));

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
  test(`${theme}: texts have contrast 7:1, control borders and focus 3:1`, () => {
    for (const ground of GROUNDS) {
      WORDS.forEach((name) => meets(name, ground, 7));
      ["edge", "focus"].forEach((name) => meets(name, ground, 3));
    }
    // Cards stand out from the background.
    meets("surface", "ground", 1.25);
    ["good", "asks", "bad"].forEach((name) => meets(name, `${name}-tint`, 7));
    ["good-fill", "asks-fill", "bad-fill"].forEach((name) => meets(name, "surface", 3));
    meets("on-accent", "accent", 7);
    for (const name of AGENTS) meets("on-agent", name, 7);
  });
}

test("system dark theme equals the selected dark theme", () => {
  assert.deepEqual(colours(':root:not([data-theme="light"])'), DARK);
  assert.deepEqual(Object.keys(LIGHT).filter((name) => !(name in DARK) && name !== "on-agent" && !AGENTS.includes(name)), []);
});

test("colours are defined only in the theme and do not depend on window activity", () => {
  for (const file of readdirSync(UI).filter((name) => name.endsWith(".css") && name !== "theme.css")) {
    const text = readFileSync(new URL(file, UI), "utf8");
    assert.doesNotMatch(text, /#[0-9a-f]{3,8}\b|rgba?\(|hsl|opacity: 0?\.|window-inactive|backdrop/i, file);
  }
});
