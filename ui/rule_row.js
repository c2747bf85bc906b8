// One rule as a row: its position, effect and hits, and a menu.

import { html, nothing } from "./html.js";
import { closeMenu, menu } from "./menu.js";
import { isOpen, toggle } from "./opened.js";
import * as parts from "./parts.js";
import { movedRule, ruleThat, withoutRule } from "./rule_draft.js";
import { current, edit } from "./rule_editor.js";
import { redraw, say } from "./state.js";
import { RULES } from "./texts/rules.js";

/** @typedef {{ name: string, description: string, then: string, text: string }} Shown */

/** @type {[string, string][]} */
const EFFECTS = [["allow", RULES.allows], ["escalate", RULES.asks], ["deny", RULES.denies]];

/**
 * @param {Shown} rule
 * @param {number} at
 * @param {number} of
 * @param {import("./types.js").Rule | undefined} known The saved rule with this name.
 * @param {number} most Highest number of hits of any rule.
 */
export function ruleRow(rule, at, of, known, most) {
  const source = `source:${rule.name}`;
  return parts.row(
    html`
      ${parts.title(html`<code>${rule.name}</code>`, known ? nothing : parts.chip(RULES.isNew, "asks"), known && known.then !== rule.then ? parts.chip(RULES.isChanged, "asks") : nothing)}
      <div class="says-what">${rule.description}</div>
      ${known ? parts.hitBar(known.decided, most, RULES.hits(known.decided)) : nothing}
      ${known ? known.findings.map((one) => parts.warning(one)) : nothing}
      ${isOpen(source) ? html`<pre tabindex="0" aria-label=${RULES.sourceOf(rule.name)}>${rule.text}</pre>` : nothing}`,
    html`
      ${menu(`then:${rule.name}`, RULES.does(effect(rule.then), rule.name), () => EFFECTS.map(([then, text]) =>
        parts.button(`then:${rule.name}:${then}`, html`${then === rule.then ? parts.icon("check") : nothing}${text}`, () => leave(ruleThat(current(), rule.name, then))),
      ), { text: html`${effect(rule.then)}${parts.icon("chevron-down")}`, kind: `verdict ${rule.then}` })}
      ${menu(`more:${rule.name}`, RULES.more(rule.name), () => html`
        ${sourceButton(source, rule.name)}
        ${moveButton("earlier", rule.name, at, at - 1, of)}
        ${moveButton("later", rule.name, at, at + 1, of)}
        ${parts.button(`remove:${rule.name}`, RULES.remove, () => leave(withoutRule(current(), rule.name)), { label: RULES.removeLabel(rule.name), kind: "stop" })}`)}`,
    html`${parts.dragHandle(`move:${rule.name}`, RULES.move(rule.name), at, (to) => move(rule.name, at, to, of))}<span class="number">${at + 1}</span>`,
  );
}

/** Returns the word for a decision. @param {string} then */
export const effect = (then) => EFFECTS.find(([value]) => value === then)?.[1] ?? then;

/**
 * @param {string} source
 * @param {string} name
 */
function sourceButton(source, name) {
  const text = isOpen(source) ? RULES.hideSource : RULES.showSource;
  const press = () => {
    closeMenu();
    toggle(source);
  };
  return parts.button(source, text, press, { label: RULES.sourceLabel(text, name) });
}

/**
 * Returns a menu item that moves a rule by one position, as an alternative to dragging.
 * @param {"earlier" | "later"} direction
 * @param {string} name
 * @param {number} at
 * @param {number} to
 * @param {number} of
 */
const moveButton = (direction, name, at, to, of) =>
  parts.button(`${direction}:${name}`, html`${parts.icon(direction === "earlier" ? "arrow-up" : "arrow-down")}${RULES[direction]}`, () => move(name, at, to, of), {
    label: direction === "earlier" ? RULES.earlierLabel(name) : RULES.laterLabel(name),
    off: to < 0 || to >= of,
  });

/**
 * @param {string} name
 * @param {number} at
 * @param {number} to
 * @param {number} of
 */
function move(name, at, to, of) {
  const text = movedRule(current(), name, to - at);
  if (text === null) return;
  edit(text);
  say(RULES.moved(name, to + 1, of));
  redraw();
}

/** Applies a change made in the menu, and closes the menu. @param {string | null} text */
function leave(text) {
  if (text !== null) edit(text);
  closeMenu();
  redraw();
}
