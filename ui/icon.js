// Icons from the Lucide sprite, and the icons of agents.

import { html, svg } from "./html.js";
import { hue, initials } from "./initials.js";

/**
 * Returns an icon of the sprite, which is part of the page. It is decoration: the words beside it, or the label of its button, name it.
 * @param {string} name
 * @param {string} [kind] CSS classes, such as `good`, `asks`, `bad`, `quiet` or `big`.
 */
export const icon = (name, kind = "") =>
  html`<svg class="icon ${kind}" viewBox="0 0 24 24" aria-hidden="true" focusable="false">${svg`<use href="#i-${name}"></use>`}</svg>`;

/**
 * Returns the icon of an agent: its initials on its colour. The name stands beside it.
 * @param {string} name
 * @param {"" | "small" | "big"} [size]
 */
export const agentIcon = (name, size = "") => html`<span class="agent-icon ${hue(name)} ${size}" aria-hidden="true">${initials(name)}</span>`;
