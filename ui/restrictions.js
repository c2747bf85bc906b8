// Denials that last until the session ends. Lifting a denial grants nothing.

import { actButton } from "./action_button.js";
import * as backend from "./backend.js";
import { html, nothing, repeat } from "./html.js";
import * as parts from "./parts.js";
import { AGENTS } from "./texts/agents.js";

/** @param {import("./types.js").Denial[]} denied */
export const denials = (denied) => repeat(denied, (one) => one.id, denialRow);

/** @param {import("./types.js").Denial} one */
const denialRow = (one) =>
  parts.row(
    html`${parts.title(parts.foreign(one.what), parts.chip(AGENTS.denied))}${parts.facts(html`${AGENTS.saidNo} ${parts.time(one.time_ms)}`, one.note ? html`\u201c${parts.foreign(one.note)}\u201d` : nothing)}`,
    askMeAgain(`undeny:${one.id}`, one.what, () => backend.forgetQuestion(one.id)),
    parts.icon("square-x", "bad"),
  );

/**
 * Returns the button that undoes a denial.
 * @param {string} key
 * @param {string} what
 * @param {() => Promise<void>} act
 */
export const askMeAgain = (key, what, act) => actButton({ key, ...AGENTS.askAgain, label: AGENTS.askAgainLabel(what), act });
