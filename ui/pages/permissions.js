// Lists all permissions, and lets the user revoke, change and add them.

import { declinedRows } from "../grant_declined.js";
import { addButton, addPanel } from "../grant_form.js";
import { grouped, listed, permissions as held } from "../grant_list.js";
import { grantRow, isSelecting, leaveSelection, revokeManyButton, selectAll, selected } from "../grant_row.js";
import { html, live, nothing, repeat } from "../html.js";
import { openFromAddress, scrollToOpened } from "../opened.js";
import * as parts from "../parts.js";
import { revoked } from "../revoke.js";
import { redraw } from "../state.js";
import { FRAME } from "../texts/frame.js";
import { PERMISSIONS } from "../texts/permissions.js";

/** @typedef {import("../types.js").Grant} Grant */

/** Rows per page. */
const STEP = 100;

/** @type {import("../grant_list.js").View} */
const view = { text: "", by: "client", sort: "name" };
let at = 0;

/** @type {import("../app.js").Page} */
export const permissions = {
  id: "permissions",
  name: FRAME.pages.permissions,
  count: (snapshot) => held(snapshot).length,
  view(snapshot, part) {
    openFromAddress("permissions", part, part && `grant:${part}`);
    const all = held(snapshot);
    const current = new Set(all.map((grant) => grant.id));
    const past = [...revoked.values()].map(({ grant }) => grant).filter((grant) => !current.has(grant.id));
    for (const id of selected) if (!current.has(id)) selected.delete(id);
    const rows = listed([...all, ...past], view);
    at = Math.min(at, Math.max(0, rows.length - 1) - (Math.max(0, rows.length - 1) % STEP));
    const shown = rows.slice(at, at + STEP);
    return html`
      ${parts.heading(FRAME.pages.permissions, snapshot.clients.length > 0 ? addButton() : nothing)}
      ${addPanel(snapshot)}
      ${all.length + past.length === 0 ? emptyPage(snapshot) : html`
        ${tools(all, shown.map(({ grant }) => grant).filter((grant) => current.has(grant.id)))}
        ${rows.length === 0 ? parts.empty(PERMISSIONS.noMatch, PERMISSIONS.noMatchHint) : nothing}
        ${repeat(grouped(shown, view.by), ({ key }) => key, ({ under, grants }) => section(under, grants, all))}
        ${parts.pager("granted", at, shown.length, rows.length, STEP, go)}`}
      ${declinedRows(snapshot.grants.filter((grant) => grant.kind === "declined"))}`;
  },
  drawn: scrollToOpened,
};

/** @param {import("../types.js").Snapshot} snapshot */
const emptyPage = ({ clients }) =>
  parts.group(parts.row(parts.emptyState("key-round", clients.length > 0 ? PERMISSIONS.none : PERMISSIONS.noneYet,
    clients.length > 0 ? nothing : html`<a class="button main" href="#agents" data-key="connect">${PERMISSIONS.connect}</a>`)));

/** @param {number} to */
function go(to) {
  at = to;
  redraw();
}

/**
 * @param {Grant[]} all
 * @param {Grant[]} shown
 */
const tools = (all, shown) => html`
  <div class="tools">
    <input type="search" class="grow" data-key="find-grants" aria-label=${PERMISSIONS.find} placeholder=${PERMISSIONS.findHint}
      .value=${live(view.text)} @input=${(/** @type {Event} */ event) => set("text", parts.valueOf(event))}>
    ${parts.menu("order", PERMISSIONS.order, () => html`
      ${parts.field(PERMISSIONS.group, parts.select("by", view.by, [["client", PERMISSIONS.byAgent], ["folder", PERMISSIONS.byFolder]], (to) => set("by", to)))}
      ${parts.field(PERMISSIONS.sort, parts.select("sort", view.sort, [["name", PERMISSIONS.byName], ["newest", PERMISSIONS.newest], ["used", PERMISSIONS.lastUsed], ["ends", PERMISSIONS.ending]], (to) => set("sort", to)))}`, { text: html`${parts.icon("list-ordered")} ${PERMISSIONS.order}`, kind: "" })}
    ${all.length === 0 ? nothing : html`
      ${parts.button("select", isSelecting() ? PERMISSIONS.selectDone : PERMISSIONS.select, () => leaveSelection(!isSelecting()), { expanded: isSelecting() })}
      ${parts.menu("more-grants", PERMISSIONS.more, () => revokeManyButton("take-back-everything", PERMISSIONS.revokeEverything, all, { kind: "stop" }))}`}
  </div>
  ${isSelecting() && all.length > 0 ? html`
    <div class="tools many">
      ${parts.tick("select-all", PERMISSIONS.selectAll(shown.length), shown.length > 0 && shown.every((grant) => selected.has(grant.id)), (on) => selectAll(shown, on))}
      <span class="grow"></span>
      ${chosenButton(all.filter((grant) => selected.has(grant.id)))}
    </div>` : nothing}`;

/** @param {Grant[]} chosen */
const chosenButton = (chosen) => revokeManyButton("take-back-selected", PERMISSIONS.revokeSelected(chosen.length), chosen, { kind: "stop" });

/**
 * @param {keyof typeof view} field
 * @param {string} to
 */
function set(field, to) {
  Object.assign(view, { [field]: to });
  at = 0;
  redraw();
}

/**
 * @param {string} under
 * @param {Grant[]} grants
 * @param {Grant[]} all
 */
function section(under, grants, all) {
  const of = all.filter((grant) => grant.client === under);
  return html`
    <section aria-label=${under || PERMISSIONS.other.single}>
      ${under === "" ? html`<div class="some"></div>` : parts.section(
        view.by === "client" ? html`<span class="who">${parts.agentIcon(under, "small")} ${parts.client(under)}</span>` : under.startsWith("/") ? parts.path(under) : under,
        view.by === "client" && of.length > 1 ? revokeManyButton(`take-back-of:${under}`, PERMISSIONS.revokeAll, of, { label: PERMISSIONS.revokeAllLabel(under), kind: "plain" }) : nothing,
      )}
      ${parts.group(repeat(grants, (grant) => grant.id, (grant) => grantRow(grant, view.by === "client")))}
    </section>`;
}
