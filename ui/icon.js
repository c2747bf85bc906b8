// Icons from the Lucide sprite, and the icons of agents.

import { html, svg } from "./html.js";

/**
 * Returns an icon of `vendor/lucide/sprite.svg`. It is decoration: the words beside it, or the label of its button, name it.
 * @param {string} name
 * @param {string} [kind] CSS classes, such as `good`, `asks`, `bad`, `quiet` or `big`.
 */
export const icon = (name, kind = "") =>
  html`<svg class="icon ${kind}" viewBox="0 0 24 24" aria-hidden="true" focusable="false">${svg`<use href="vendor/lucide/sprite.svg#${name}"></use>`}</svg>`;

const HUES = "abcdefgh";

/**
 * Returns the initials of an agent: of its first two words, or the first two letters of its only word.
 * @param {string} name
 */
export function initials(name) {
  const [first = "", second = ""] = name.split(/[\s_-]+/u).filter(Boolean);
  const letters = second ? [...first].slice(0, 1).concat([...second].slice(0, 1)) : [...first].slice(0, 2);
  return letters.join("") || "?";
}

/**
 * Returns the class of an agent's colour, which depends on its name alone.
 * @param {string} name
 */
export function hue(name) {
  let sum = 0;
  for (const letter of name) sum = (sum * 31 + (letter.codePointAt(0) ?? 0)) % 65_521;
  return `hue-${HUES[sum % HUES.length]}`;
}

/**
 * Returns the icon of an agent: its initials on its colour. The name stands beside it.
 * @param {string} name
 * @param {"" | "small" | "big"} [size]
 */
export const agentIcon = (name, size = "") => html`<span class="agent-icon ${hue(name)} ${size}" aria-hidden="true">${initials(name)}</span>`;
