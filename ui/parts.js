// The objects that look the same on every page: path, client, decision, time, row, group, field.

import { html, nothing } from "./html.js";
import { state } from "./state.js";
import * as words from "./words.js";

/** @typedef {unknown} Content */

/**
 * A path: home as `~`, the last two names strong, the whole of it to be selected.
 * @param {string} full
 */
export function path(full) {
  const [lead, strong] = words.pathParts(full, state.snapshot?.home ?? "");
  return html`<span class="path" title=${full}><span class="lead">${lead}</span><b>${strong}</b></span>`;
}

/**
 * The thing that was granted: a path, a host, or a tool with its values.
 * @param {import("./types.js").Grant} grant
 */
export const granted = (grant) =>
  grant.kind === "tool" || grant.kind === "host" ? html`<span class="path"><b>${foreign(grant.path)}</b></span>` : path(grant.path);

/**
 * Words that come from elsewhere, which never turn the order of the words around them.
 * @param {string} text
 */
export const foreign = (text) => html`<bdi>${text}</bdi>`;

/**
 * @param {string} name
 * @param {string | null} [exe] The program that proves it.
 */
export const client = (name, exe) => html`<span class="client" title=${exe ?? nothing}>${foreign(name)}</span>`;

/**
 * Who uses what: "Claude Code → filesystem".
 * @param {Content} who
 * @param {string} server
 */
export const pair = (who, server) => html`${who}<span class="arrow" aria-label="with">\u2192</span>${foreign(server)}`;

/** @type {Record<string, [string, string]>} */
const DECISIONS = { allow: ["allow", "Allowed"], deny: ["deny", "Denied"], escalate: ["ask", "Asked"] };

/**
 * The badge of a decision; of anything else, the kind of entry.
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
 * The badge of what a rule does.
 * @param {string} then
 */
export const thenBadge = (then) => html`<span class="badge ${DECISIONS[then]?.[0] ?? "note"}">${THEN[then] ?? then}</span>`;

/**
 * A time: relative, exact on hover.
 * @param {number} then
 * @param {"ago" | "left"} [how]
 */
export const time = (then, how = "ago") =>
  html`<time datetime=${new Date(then).toISOString()} title=${words.exact(then)}>${words[how](then, Date.now())}</time>`;

/**
 * A group of rows. `kind` is a class for its look.
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
 * A group with nothing in it, which teaches.
 * @param {string} title
 * @param {Content} text
 */
export const empty = (title, text) => group(html`<div class="empty" role="listitem"><b>${title}</b>${text}</div>`);

/**
 * Quiet facts on one line, with dots between.
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
 * A problem that is read out.
 * @param {string} text
 */
export const problem = (text) => html`<p class="small bad" role="alert">${text}</p>`;

/**
 * A button. `key` names it for the focus. One that is `busy` keeps the focus and hears no press. One that `leaves` ends what the
 * group around it begins, as Escape does there.
 * @param {string} key
 * @param {Content} text
 * @param {() => void} press
 * @param {{ label?: string, kind?: string, off?: boolean, busy?: boolean, leaves?: boolean, expanded?: boolean }} [more]
 */
export const button = (key, text, press, { label, kind = "", off = false, busy = false, leaves = false, expanded } = {}) => html`
  <button type="button" class=${kind} data-key=${key} aria-label=${label ?? nothing} aria-expanded=${expanded === undefined ? nothing : String(expanded)}
    aria-disabled=${busy ? "true" : nothing} ?data-leaves=${leaves} ?disabled=${off} @click=${busy ? null : press}>${text}</button>`;

/**
 * A field with its name above.
 * @param {string} name
 * @param {Content} control
 * @param {Content} [hint]
 */
export const field = (name, control, hint = nothing) => html`
  <label class="field"><span class="name">${name}</span>${control}${hint === nothing ? nothing : html`<span class="hint">${hint}</span>`}</label>`;

/**
 * A choice from a list.
 * @param {string} key
 * @param {string} chosen
 * @param {[string, string][]} options Value and words.
 * @param {(value: string) => void} choose
 * @param {string} [label] Its name, where no field names it.
 */
export const select = (key, chosen, options, choose, label) => html`
  <select data-key=${key} aria-label=${label ?? nothing} @change=${(/** @type {Event} */ event) => choose(valueOf(event))}>
    ${options.map(([value, text]) => html`<option value=${value} ?selected=${value === chosen}>${text}</option>`)}
  </select>`;

/**
 * A box to tick.
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
 * What was typed or chosen.
 * @param {Event} event
 */
export const valueOf = (event) =>
  /** @type {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} */ (event.target).value;

/**
 * Lines for looking through a long list, a page at a time.
 * @param {string} key
 * @param {number} at The first that is shown, from 0.
 * @param {number} shown
 * @param {number | null} all Null where there are more than were counted.
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
