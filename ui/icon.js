// Icons from the Lucide sprite, and the icons of agents.

import { html, svg } from "./html.js";
import { hue, initials } from "./initials.js";

/**
 * Returns an icon from the sprite in the page. Screen readers skip it, because the text beside it or its button's label gives
 * its meaning.
 * @param {string} name
 * @param {string} [kind] CSS classes, such as `good`, `asks`, `bad`, `quiet` or `big`.
 */
export const icon = (name, kind = "") =>
  html`<svg class="icon ${kind}" viewBox="0 0 24 24" aria-hidden="true" focusable="false">${svg`<use href="#i-${name}"></use>`}</svg>`;

/**
 * Returns an agent's icon: its initials on its colour. The agent's name is shown beside it.
 * @param {string} name
 * @param {"" | "small" | "big"} [size]
 */
export const agentIcon = (name, size = "") => html`<span class="agent-icon ${hue(name)} ${size}" aria-hidden="true">${initials(name)}</span>`;
