// Components shared by all pages. `tests/window/parts.html` shows each in all its states.
//
//   icon(name, kind?)                        an icon in the sprite: "folder", "key-round"; kinds: good, asks, bad, quiet, big
//   agentIcon(name, "" | "small" | "big")    an agent's initials on its colour
//   path(full) granted(grant) foreign(text) coded(text) client(name, exe?) pair(who, server) time(ms, "ago" | "left")
//
//   page: heading(title, act?)               the page's h1, with the page's main button
//         tabs(label, [[hash, text, n?]], current)    parts of a page, as links to #page/part; the view's 2nd argument is the part
//         section(title, act?)               an h2, with a button
//   list: group(rows, kind?)                 a card of rows
//         row(what, act?, before?)           one row; `before` is its icon, `act` one visible button and a menu
//         title(text, ...chips)              first line of a row: the name and chips
//         facts(...parts)                    second line of a row: quiet facts, separated by dots
//         opening(key, label, isOpen, toggle, row, body)    a row whose details open in place, with a chevron
//         hitBar(n, most, words)             a bar of hits
//         dragHandle(key, label, at, move)   moves a row with the pointer or the arrow keys
//         pager(key, at, shown, all, step, go)
//         emptyState(icon, sentence, button?)     one drawing, one sentence, one button
//   say:  chip(text, tone?, icon?)           a word on a tint; tones: good, asks, bad, note
//         accessChip(access)                 "read", "read and write" or "read, write and delete"
//         dot(tone, text)                    a state: a dot with its own shape, and the word
//         statePill(mood, word, line)        the state of protection
//         badge(decision, otherwise?) warning(text) problem(text)
//   do:   button(key, text, press, {label, kind, off, busy, leaves, expanded})   kinds: "", main, stop, plain, bare
//         iconButton(key, icon, label, press)
//         filterChip(key, text, isOn, press) a chip that is on or off
//         switchBox(key, label, isOn, turn, off?)    on or off, saved at once
//         menu(key, label, () => items, {text?, kind?, up?})    the "…" of a row; items are buttons, also those of actButton
//         field(name, control, hint?) select(key, chosen, options, choose, label?, off?) tick(key, text, on, turn, label?)
//         sidePanel(label, title, body, leave)    details beside a list
//
// Buttons that run an action, with progress and confirmation: `actButton` and `planPanel` in `action_button.js`.
// Texts of a page: `texts/<page>.js`, one object with a key for each text.
// Links from other pages: `#agents/NAME`, `#servers/installed/NAME` and `#permissions/GRANT` open that one, `#activity/SEQ`
// shows that entry; names are percent-encoded.

import { dragHandle } from "./drag.js";
import { html, live, nothing, svg } from "./html.js";
import { agentIcon, icon } from "./icon.js";
import { menu } from "./menu.js";
import { state } from "./state.js";
import { statusIcon } from "./status_icon.js";
import { SHARED } from "./texts/shared.js";
import * as words from "./words.js";

export { agentIcon, dragHandle, icon, menu };

/** @typedef {unknown} Content */

/**
 * Returns a path with the home folder as `~` and its last two names in bold. The text can be selected.
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
 * Isolates untrusted text, so that its writing direction does not affect the text around it.
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
export const pair = (who, server) => html`${who}<span class="arrow" aria-label=${SHARED.with}>\u2192</span>${foreign(server)}`;

/** @type {Record<string, [string, string]>} */
const DECISIONS = { allow: ["allow", SHARED.decisions.allow], deny: ["deny", SHARED.decisions.deny], escalate: ["ask", SHARED.decisions.escalate] };

/**
 * Returns the badge for a decision, or for another kind of entry.
 * @param {string | null} decision
 * @param {string} [otherwise]
 */
export function badge(decision, otherwise = "") {
  const [kind, text] = DECISIONS[decision ?? ""] ?? ["note", otherwise];
  return html`<span class="badge ${kind}">${text}</span>`;
}

/**
 * Returns a relative time, which shows the exact time on hover.
 * @param {number} then
 * @param {"ago" | "left"} [how]
 */
export const time = (then, how = "ago") =>
  html`<time datetime=${new Date(then).toISOString()} title=${words.exact(then)}>${(how === "left" ? words.timeLeft : words.ago)(then, Date.now())}</time>`;

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
 * Returns the heading of a page, with its main button.
 * @param {Content} text
 * @param {Content} [act]
 */
export const heading = (text, act = nothing) => html`<div class="heading"><h1>${text}</h1>${act}</div>`;

/**
 * Returns the heading of a part of a page.
 * @param {Content} text
 * @param {Content} [act]
 */
export const section = (text, act = nothing) => html`<div class="heading"><h2>${text}</h2>${act}</div>`;

/**
 * Returns links to the parts of a page.
 * @param {string} label Accessible name.
 * @param {[hash: string, text: string, count?: number][]} all Such as `["servers/add", "Add"]`.
 * @param {string} current
 */
export const tabs = (label, all, current) => html`
  <nav class="tabs" aria-label=${label}>
    ${all.map(([hash, text, n = 0]) => html`<a href="#${hash}" data-key="tab:${hash}" aria-current=${hash === current ? "page" : nothing}>${text}${n > 0 ? html` <span class="count">${n}</span>` : nothing}</a>`)}
  </nav>`;

/**
 * Returns the first line of a row.
 * @param {Content} text
 * @param {...Content} chips
 */
export const title = (text, ...chips) => html`<div class="title"><span class="name">${text}</span>${chips}</div>`;

/**
 * Returns a row whose details open in place.
 * @param {string} key
 * @param {string} label Accessible name of the chevron, such as "Details of git".
 * @param {boolean} isOpen
 * @param {() => void} toggle
 * @param {{ what: Content, act?: Content, before?: Content }} shown
 * @param {() => Content} body Drawn only while the row is open.
 */
export const opening = (key, label, isOpen, toggle, { what, act = nothing, before = nothing }, body) => html`
  <div class="row opens ${isOpen ? "open" : ""}" role="listitem">
    <div class="head">
      ${before}<div class="what">${what}</div><div class="do">${act}
      <button type="button" class="bare chevron" data-key=${key} aria-label=${label} aria-expanded=${String(isOpen)} @click=${toggle}>${icon("chevron-down")}</button></div>
    </div>
    ${isOpen ? html`<div class="body">${body()}</div>` : nothing}
  </div>`;

/**
 * Returns a bar with a length proportional to `n / most`.
 * @param {number} n
 * @param {number} most
 * @param {string} text Such as "1,204 calls".
 */
export const hitBar = (n, most, text) => html`
  <span class="hits"><svg class="hit-bar" viewBox="0 0 64 6" preserveAspectRatio="none" aria-hidden="true">${svg`
    <rect class="track" width="64" height="6" rx="3" /><rect class="fill" width=${most > 0 && n > 0 ? Math.max(3, Math.round((64 * n) / most)) : 0} height="6" rx="3" />`}</svg>${text}</span>`;

/**
 * Returns the content of an empty list: an icon, a sentence and a button.
 * @param {string} name Icon in the drawing.
 * @param {Content} sentence
 * @param {Content} [act]
 */
export const emptyState = (name, sentence, act = nothing) => html`
  <div class="empty-state">
    <span class="drawing" aria-hidden="true">${icon(name)}</span>
    <p>${sentence}</p>
    ${act}
  </div>`;

/** @typedef {"good" | "asks" | "bad" | "note"} Tone */

/**
 * Returns a chip: a word on a tinted background.
 * @param {Content} text
 * @param {Tone} [tone]
 * @param {string} [name] Icon.
 */
export const chip = (text, tone = "note", name) => html`<span class="chip ${tone}">${name ? icon(name) : nothing}${text}</span>`;

/**
 * Returns a chip for the granted access, such as "read and write".
 * @param {string[]} access
 */
export const accessChip = (access) => chip(words.list(access));

/**
 * Returns a state as a dot and a word. Each tone has its own shape, so that colour is not the only cue.
 * @param {Tone} tone
 * @param {Content} text
 */
export const dot = (tone, text) =>
  html`<span class="dot ${tone}"><svg viewBox="0 0 10 10" aria-hidden="true">${DOTS[tone]}</svg>${text}</span>`;

/** @type {Record<Tone, unknown>} */
const DOTS = {
  good: svg`<circle cx="5" cy="5" r="4" />`,
  asks: svg`<path d="M5 .8 9.6 9H.4Z" />`,
  bad: svg`<rect x="1" y="1" width="8" height="8" />`,
  note: svg`<circle class="ring" cx="5" cy="5" r="3.4" />`,
};

/**
 * Returns the state of protection: a curtain, a word and a line of facts.
 * @param {import("./status_icon.js").Mood} mood
 * @param {string} word
 * @param {string} line
 */
export const statePill = (mood, word, line) => html`
  <div class="pill ${mood}">${statusIcon(mood)}<div class="pill-words"><p><b>${word}</b></p>${line ? html`<p class="small">${line}</p>` : nothing}</div></div>`;

/**
 * Returns a button that shows only an icon.
 * @param {string} key
 * @param {string} name
 * @param {string} label
 * @param {() => void} press
 * @param {{ kind?: string, leaves?: boolean }} [more]
 */
export const iconButton = (key, name, label, press, { kind = "bare", leaves = false } = {}) => html`
  <button type="button" class=${kind} data-key=${key} aria-label=${label} title=${label} ?data-leaves=${leaves} @click=${press}>${icon(name)}</button>`;

/**
 * Returns a chip that is on or off.
 * @param {string} key
 * @param {Content} text
 * @param {boolean} isOn
 * @param {() => void} press
 */
export const filterChip = (key, text, isOn, press) => html`
  <button type="button" class="filter-chip" data-key=${key} aria-pressed=${String(isOn)} @click=${press}>${isOn ? icon("check") : nothing}${text}</button>`;

/**
 * Returns a switch.
 * @param {string} key
 * @param {string} label
 * @param {boolean} isOn
 * @param {(on: boolean) => void} turn
 * @param {boolean} [off] True if the user cannot turn it.
 */
export const switchBox = (key, label, isOn, turn, off = false) => html`
  <input type="checkbox" role="switch" class="switch" data-key=${key} aria-label=${label} .checked=${live(isOn)} ?disabled=${off}
    @change=${(/** @type {Event} */ event) => turn(/** @type {HTMLInputElement} */ (event.target).checked)}>`;

/**
 * Returns a panel beside a list. Escape closes it.
 * @param {string} label Accessible name.
 * @param {Content} text
 * @param {Content} body
 * @param {() => void} leave
 */
export const sidePanel = (label, text, body, leave) => html`
  <aside class="side" aria-label=${label}><div role="group" aria-label=${label}>
    <div class="side-head"><h2>${text}</h2>${iconButton("side:close", "x", SHARED.closeDetails, leave, { leaves: true })}</div>
    ${body}
  </div></aside>`;

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
 * Returns a text in which names in backquotes are formatted as code.
 * @param {string} text
 */
export const coded = (text) => html`<bdi>${text.split("`").map((part, at) => (at % 2 === 1 ? html`<code>${part}</code>` : part))}</bdi>`;

/**
 * @param {string} text
 */
export const warning = (text) => html`<div class="small asks">\u26a0 ${coded(text)}</div>`;

/**
 * Returns an error message, which screen readers announce.
 * @param {string} text
 */
export const problem = (text) => html`<p class="small bad" role="alert">${coded(text)}</p>`;

/**
 * Returns a button. `key` identifies the button when the focus is restored. A `busy` button keeps the focus and ignores
 * presses. A button with `leaves` cancels the group around it, as Escape does.
 * @param {string} key
 * @param {Content} text
 * @param {() => void} press
 * @param {{ label?: string, kind?: string, off?: boolean, busy?: boolean, leaves?: boolean, expanded?: boolean }} [more]
 */
export const button = (key, text, press, { label, kind = "", off = false, busy = false, leaves = false, expanded } = {}) => html`
  <button type="button" class=${kind} data-key=${key} aria-label=${label ?? nothing} aria-expanded=${expanded === undefined ? nothing : String(expanded)}
    aria-disabled=${busy ? "true" : nothing} ?data-leaves=${leaves} ?disabled=${off} @click=${busy ? null : press}>${text}</button>`;

/**
 * Returns a field with its label above it.
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
 * @param {boolean} [off] True if the user cannot choose.
 */
export const select = (key, chosen, options, choose, label, off = false) => html`
  <select data-key=${key} aria-label=${label ?? nothing} ?disabled=${off} @change=${(/** @type {Event} */ event) => choose(valueOf(event))}>
    ${options.map(([value, text]) => html`<option value=${value} .selected=${live(value === chosen)}>${text}</option>`)}
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
  <label class="tick"><input type="checkbox" data-key=${key} aria-label=${label ?? nothing} .checked=${live(on)}
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
    <div class="pager" role="group" aria-label=${SHARED.pagerLabel}>
      ${button(`${key}:before`, SHARED.newer, () => go(Math.max(0, at - step)), { off: at === 0 })}
      <span class="quiet small">${SHARED.range(at + 1, at + shown, all)}</span>
      ${button(`${key}:after`, SHARED.older, () => go(at + step), { off: !more })}
    </div>`;
}
