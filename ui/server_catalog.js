// The catalog of known servers. Each one is added with a sandbox tailored to it.

import { actButton } from "./action_button.js";
import * as backend from "./backend.js";
import { html, live, nothing, repeat } from "./html.js";
import { isOpen, openable, toggle } from "./opened.js";
import * as parts from "./parts.js";
import { redraw } from "./state.js";
import { SERVERS } from "./texts/servers.js";

/** @typedef {import("./types.js").CatalogEntry} CatalogEntry */

/** Typed settings, by server. @type {Map<string, Record<string, string>>} */
const filled = new Map();
/** @type {Map<string, string[]>} */
const results = new Map();

/**
 * @param {import("./types.js").Servers} all
 * @param {() => Promise<void>} reload
 */
export const catalog = (all, reload) => html`
  ${parts.section(SERVERS.catalogTitle)}
  ${parts.group(repeat(all.catalog, (one) => one.id, (one) => row(one, all.servers.some(({ name }) => name === one.id), reload)))}
  <p class="small quiet after">${SERVERS.writtenInto} ${parts.path(all.file)}.</p>`;

/**
 * @param {CatalogEntry} known
 * @param {boolean} isThere
 * @param {() => Promise<void>} reload
 */
function row(known, isThere, reload) {
  const key = `catalog:${known.id}`;
  const needed = Object.entries(known.settings);
  const add = isThere || needed.length > 0 ? nothing : addButton(known, reload);
  const more = needed.length > 0 && !isThere && !isOpen(key) ? parts.button(`more:${known.id}`, SERVERS.addMore, () => toggle(key), { label: SERVERS.addLabel(known.title) }) : nothing;
  return openable(key, SERVERS.details(known.title), {
    before: parts.icon("box"),
    what: html`
      ${parts.title(known.title, isThere ? parts.chip(SERVERS.added, "good") : nothing)}
      ${parts.facts(known.about)}
      ${(results.get(known.id) ?? []).map((one) => html`<p class="small" role="status">${one}</p>`)}`,
    act: html`${add}${more}`,
  }, () => html`
    <dl>
      <dt>${SERVERS.itsSandbox}</dt><dd>${known.why}</dd>
      <dt>${SERVERS.writtenFrom}</dt><dd>${known.from}${known.needs ? ` \u00b7 ${SERVERS.needs(known.needs)}` : ""}</dd>
    </dl>
    ${isThere || needed.length === 0 ? nothing : html`<div class="form">${needed.map(([name, about]) => field(known, name, about))}</div><div class="both start">${addButton(known, reload)}</div>`}`);
}

/**
 * @param {CatalogEntry} known
 * @param {string} name
 * @param {string} about
 */
function field(known, name, about) {
  const given = filled.get(known.id) ?? {};
  const fill = (/** @type {Event} */ event) => {
    filled.set(known.id, { ...given, [name]: parts.valueOf(event) });
    redraw();
  };
  return parts.field(name, html`<input type="text" class="mono" data-key="set:${known.id}:${name}" .value=${live(given[name] ?? "")} @input=${fill}>`, about);
}

/**
 * @param {CatalogEntry} known
 * @param {() => Promise<void>} reload
 */
function addButton(known, reload) {
  const given = filled.get(known.id) ?? {};
  return actButton({
    key: `add:${known.id}`,
    ...SERVERS.add,
    label: SERVERS.addLabel(known.title),
    off: Object.keys(known.settings).some((name) => !given[name]),
    act: async () => {
      results.set(known.id, await backend.addServer({ id: known.id, name: known.id, settings: given }));
      await reload();
    },
  });
}
