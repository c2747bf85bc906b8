// Components shared by all pages: path, client, decision, time, row, group, field.

import { html, nothing } from "./html.js";
import { state } from "./state.js";
import * as words from "./words.js";

/** @typedef {unknown} Content */

/**
 * Returns a path with home as `~` and its last two names strong. All of it can be selected.
 * @param {string} full
 */
export function path(full) {
  const [lead, strong] = words.pathParts(full, state.snapshot?.home ?? "");
  return html`<span class="path" title=${full}><span class="lead">${lead}</span><b>${strong}</b></span>`;
}

/**
 * Returns the granted object: a path, a host, or a tool with its arguments.
 * @param {import("./types.js").Grant} grant
 */
export const granted = (grant) =>
  grant.kind === "tool" || grant.kind === "host" ? html`<span class="path"><b>${foreign(grant.path)}</b></span>` : path(grant.path);

/**
 * Isolates untrusted text, so that its direction does not affect the text around it.
 * @param {string} text
 */
export const foreign = (text) => html`<bdi>${text}</bdi>`;

/**
 * @param {string} name
 * @param {string | null} [exe] The verified program.
 */
export const client = (name, exe) => html`<span class="client" title=${exe ?? nothing}>${foreign(name)}</span>`;

/**
 * Returns a pair such as "Claude Code → filesystem".
 * @param {Content} who
 * @param {string} server
 */
export const pair = (who, server) => html`${who}<span class="arrow" aria-label="with">\u2192</span>${foreign(server)}`;

/** @type {Record<string, [string, string]>} */
const DECISIONS = { allow: ["allow", "Allowed"], deny: ["deny", "Denied"], escalate: ["ask", "Asked"] };

/**
 * Returns the badge of a decision, or of another kind of entry.
 * @param {string | null} decision
 * @param {string} [otherwise]
 */
export function badge(decision, otherwise = "") {
  const [kind, text] = DECISIONS[decision ?? ""] ?? ["note", otherwise];
  return html`<span class="badge ${kind}">${text}</span>`;
}

/** @type {Record<string, string>} */
const THEN = { allow: "Allows", deny: "Denies", escalate: "Asks" };

/**
 * Returns the badge of a rule's effect.
 * @param {string} then
 */
export const thenBadge = (then) => html`<span class="badge ${DECISIONS[then]?.[0] ?? "note"}">${THEN[then] ?? then}</span>`;

/**
 * Returns a relative time, which shows the exact time on hover.
 * @param {number} then
 * @param {"ago" | "left"} [how]
 */
export const time = (then, how = "ago") =>
  html`<time datetime=${new Date(then).toISOString()} title=${words.exact(then)}>${words[how](then, Date.now())}</time>`;

/**
 * Returns a group of rows. `kind` is a CSS class.
 * @param {Content} rows
 * @param {string} [kind]
 */
export const group = (rows, kind = "") => html`<div class="group ${kind}" role="list">${rows}</div>`;

/**
 * @param {Content} what
 * @param {Content} [act]
 * @param {Content} [before]
 */
export const row = (what, act = nothing, before = nothing) => html`
  <div class="row" role="listitem">${before}<div class="what">${what}</div>${act === nothing ? nothing : html`<div class="do">${act}</div>`}</div>`;

/**
 * Returns an empty group with an explanation.
 * @param {string} title
 * @param {Content} text
 */
export const empty = (title, text) => group(html`<div class="empty" role="listitem"><b>${title}</b>${text}</div>`);

/**
 * Returns secondary facts on one line, separated by dots.
 * @param {...Content} parts
 */
export const facts = (...parts) =>
  html`<div class="facts">${parts.filter(isThere).map((part, at) => html`${at > 0 ? " \u00b7 " : nothing}${part}`)}</div>`;

/** @param {Content} part */
const isThere = (part) => part !== nothing && part !== null && part !== undefined && part !== false && part !== "";

/**
 * @param {string} text
 */
export const warning = (text) => html`<div class="small asks">\u26a0 ${text}</div>`;

/**
 * Returns an error message, which screen readers announce.
 * @param {string} text
 */
export const problem = (text) => html`<p class="small bad" role="alert">${text}</p>`;

/**
 * Returns a button. `key` identifies it for the focus. A `busy` button keeps the focus and ignores presses. A button that
 * `leaves` cancels the group around it, as Escape does.
 * @param {string} key
 * @param {Content} text
 * @param {() => void} press
 * @param {{ label?: string, kind?: string, off?: boolean, busy?: boolean, leaves?: boolean, expanded?: boolean }} [more]
 */
export const button = (key, text, press, { label, kind = "", off = false, busy = false, leaves = false, expanded } = {}) => html`
  <button type="button" class=${kind} data-key=${key} aria-label=${label ?? nothing} aria-expanded=${expanded === undefined ? nothing : String(expanded)}
    aria-disabled=${busy ? "true" : nothing} ?data-leaves=${leaves} ?disabled=${off} @click=${busy ? null : press}>${text}</button>`;

/**
 * Returns a field with its name above.
 * @param {string} name
 * @param {Content} control
 * @param {Content} [hint]
 */
export const field = (name, control, hint = nothing) => html`
  <label class="field"><span class="name">${name}</span>${control}${hint === nothing ? nothing : html`<span class="hint">${hint}</span>`}</label>`;

/**
 * Returns a select box.
 * @param {string} key
 * @param {string} chosen
 * @param {[string, string][]} options Value and label.
 * @param {(value: string) => void} choose
 * @param {string} [label] Accessible name, if no field names it.
 */
export const select = (key, chosen, options, choose, label) => html`
  <select data-key=${key} aria-label=${label ?? nothing} @change=${(/** @type {Event} */ event) => choose(valueOf(event))}>
    ${options.map(([value, text]) => html`<option value=${value} ?selected=${value === chosen}>${text}</option>`)}
  </select>`;

/**
 * Returns a check box.
 * @param {string} key
 * @param {Content} text
 * @param {boolean} on
 * @param {(on: boolean) => void} turn
 * @param {string} [label]
 */
export const tick = (key, text, on, turn, label) => html`
  <label class="tick"><input type="checkbox" data-key=${key} aria-label=${label ?? nothing} .checked=${on}
    @change=${(/** @type {Event} */ event) => turn(/** @type {HTMLInputElement} */ (event.target).checked)}>${text}</label>`;

/**
 * Returns the value that was entered or selected.
 * @param {Event} event
 */
export const valueOf = (event) =>
  /** @type {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} */ (event.target).value;

/**
 * Returns the buttons to page through a long list.
 * @param {string} key
 * @param {number} at Index of the first row shown.
 * @param {number} shown
 * @param {number | null} all Null if the total is unknown.
 * @param {number} step
 * @param {(at: number) => void} go
 */
export function pager(key, at, shown, all, step, go) {
  const more = all === null || at + shown < all;
  if (at === 0 && !more) return nothing;
  return html`
    <div class="pager" role="group" aria-label="Pages of the list">
      ${button(`${key}:before`, "Newer", () => go(Math.max(0, at - step)), { off: at === 0 })}
      <span class="quiet small">${at + 1} to ${at + shown}${all === null ? "" : ` of ${all.toLocaleString("en")}`}</span>
      ${button(`${key}:after`, "Older", () => go(at + step), { off: !more })}
    </div>`;
}
