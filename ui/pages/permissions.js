// All grants, with revoking and granting in advance.

import { actButton } from "../action_button.js";
import { changePanel } from "../grant_change.js";
import { declinedRows } from "../grant_declined.js";
import { grantForm } from "../grant_form.js";
import { grouped, listed, permissions as held, standing } from "../grant_list.js";
import { html, live, nothing, repeat } from "../html.js";
import * as parts from "../parts.js";
import { redraw } from "../state.js";
import { revoked, revokeErrors, revokeGrants, revokeButton, undoButton } from "../revoke.js";
import { clock, count, list } from "../words.js";

/** @typedef {import("../types.js").Grant} Grant */

/** Rows per page. */
const STEP = 100;

/** @type {import("../grant_list.js").View} */
const view = { text: "", by: "folder", sort: "name" };
let at = 0;
/** @type {Set<string>} */
const selected = new Set();
/** The grant whose terms are being changed. */
let changing = "";

/** @type {import("../app.js").Page} */
export const permissions = {
  id: "permissions",
  name: "Permissions",
  icon: "key-round",
  count: (snapshot) => held(snapshot).length,
  view(snapshot) {
    const all = held(snapshot);
    const current = new Set(all.map((grant) => grant.id));
    const past = [...revoked.values()].map(({ grant }) => grant).filter((grant) => !current.has(grant.id));
    for (const id of selected) if (!current.has(id)) selected.delete(id);
    const rows = listed([...all, ...past], view);
    at = Math.min(at, Math.max(0, rows.length - 1) - (Math.max(0, rows.length - 1) % STEP));
    const shown = rows.slice(at, at + STEP);
    return html`
      <h1>Permissions</h1>
      ${grantForm(snapshot)}
      ${all.length + past.length === 0
        ? parts.empty("Nothing is granted.", "When you allow more than a single call, or add a permission, it is listed here until you revoke it or it expires.")
        : html`
          ${tools()}
          ${many(all, shown.map(({ grant }) => grant).filter((grant) => current.has(grant.id)))}
          ${rows.length === 0 ? parts.empty("Nothing matches.", "Try fewer or other words.") : nothing}
          ${repeat(grouped(shown, view.by), ({ key }) => key, ({ under, grants }) => section(under, grants, all))}
          ${parts.pager("granted", at, shown.length, rows.length, STEP, go)}`}
      ${declinedRows(snapshot.grants.filter((grant) => grant.kind === "declined"))}`;
  },
};

/** @param {number} to */
function go(to) {
  at = to;
  redraw();
}

const tools = () => html`
  <div class="tools">
    <input type="search" class="grow" data-key="find-grants" aria-label="Find a permission" placeholder="Find a path, agent, server or word"
      .value=${live(view.text)} @input=${(/** @type {Event} */ event) => set("text", parts.valueOf(event))}>
    ${parts.select("by", view.by, [["folder", "By folder"], ["client", "By agent"]], (to) => set("by", to), "Grouped")}
    ${parts.select("sort", view.sort, [["name", "By name"], ["newest", "Newest first"], ["used", "Last used first"], ["ends", "Ending first"]], (to) => set("sort", to), "Sorted")}
  </div>`;

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
 * Returns the tools to select several grants and revoke the selected or all of them.
 * @param {Grant[]} all
 * @param {Grant[]} shown
 */
function many(all, shown) {
  if (all.length === 0) return nothing;
  const every = shown.length > 0 && shown.every((grant) => selected.has(grant.id));
  const turn = (/** @type {boolean} */ on) => {
    shown.forEach((grant) => (on ? selected.add(grant.id) : selected.delete(grant.id)));
    redraw();
  };
  const chosen = all.filter((grant) => selected.has(grant.id));
  return html`
    <div class="tools many">
      ${parts.tick("select-all", `Select the ${count(shown.length, "row")} in view`, every, turn)}
      <span class="grow"></span>
      ${revokeManyButton("take-back-selected", "selected", chosen)}
      ${revokeManyButton("take-back-everything", "everything", all)}
    </div>`;
}

/**
 * @param {string} key
 * @param {string} which
 * @param {Grant[]} grants
 */
function revokeManyButton(key, which, grants) {
  const all = which === "everything" || grants.length === 0 ? which : `${grants.length} ${which}`;
  return actButton({
    key,
    ready: `Revoke ${all}`,
    going: "Revoking\u2026",
    done: "Revoked",
    failed: "Not all were revoked",
    again: true,
    off: grants.length === 0,
    says: `${count(grants.length, "permission")} of ${list([...new Set(grants.map((grant) => grant.client))].sort())} are revoked now. Calls that use them are refused or ask you again.`,
    act: async () => {
      await revokeGrants(grants.map((grant) => grant.id));
      selected.clear();
      const left = grants.filter((grant) => revokeErrors.has(grant.id)).length;
      if (left > 0) throw new Error(`${count(left, "permission")}; each says why below`);
    },
  });
}

/**
 * @param {string} under
 * @param {Grant[]} grants
 * @param {Grant[]} all
 */
function section(under, grants, all) {
  const of = all.filter((grant) => grant.client === under);
  return html`
    <section aria-label=${under || "Single files and folders"} class="some">
      ${under === "" ? nothing : html`<h2 class="split">
        ${view.by === "client" ? parts.client(under) : under.startsWith("/") ? parts.path(under) : html`<span>${under}</span>`}
        ${view.by === "client" && of.length > 1 ? revokeManyButton(`take-back-of:${under}`, `of ${under}`, of) : nothing}
      </h2>`}
      ${parts.group(repeat(grants, (grant) => grant.id, grantRow))}
    </section>`;
}

/** @param {Grant} grant */
function grantRow(grant) {
  const past = revoked.get(grant.id);
  if (past) return pastRow(past);
  const used = grant.last_used_ms === null ? "never used" : html`${count(grant.uses, "use")}, last ${parts.time(grant.last_used_ms)}`;
  const problem = revokeErrors.get(grant.id);
  const { applies, words, decide } = standing(grant);
  const what = html`
    ${decide ? html`<div class="asks">\u26a0 <b>${words}.</b> <a href="#servers" data-key="decide:${grant.id}" aria-label="Decide about the server ${grant.server}">Decide</a></div>` : nothing}
    <div>${parts.granted(grant)}${grant.kind === "folder" ? html`<span class="quiet small"> and everything in it</span>` : nothing}</div>
    <div>${parts.client(grant.client)} ${applies ? "may" : "could"} ${list(grant.access)} ${grant.kind === "tool" ? "it" : ""} through ${parts.foreign(grant.server)}${applies ? html`, ${lifetime(grant)}` : nothing}</div>
    ${parts.facts(html`${grant.provenance} ${parts.time(grant.created_ms)}`, used)}
    ${applies || decide ? nothing : parts.warning(words)}
    ${grant.ending ? parts.warning(`Being revoked: ${grant.ending}`) : nothing}
    ${grant.unused_days !== null ? parts.warning(`Nothing has used it for ${count(grant.unused_days, "day")}.`) : nothing}
    ${problem === undefined ? nothing : parts.problem(`Not revoked: ${problem}`)}
    ${changing === grant.id ? changePanel(grant, () => change("")) : nothing}`;
  const acts = html`
    ${revokeButton(grant.id, grant.path)}
    ${!decide && (grant.kind === "file" || grant.kind === "folder")
      ? parts.button(`change:${grant.id}`, "Change\u2026", () => change(changing === grant.id ? "" : grant.id), {
          label: `Change\u2026 what ${grant.client} may do in ${grant.path}`,
          expanded: changing === grant.id,
        })
      : nothing}`;
  return parts.row(what, grant.ending ? nothing : acts, selectBox(grant));
}

/** @param {string} id */
function change(id) {
  changing = id;
  redraw();
}

/** @param {Grant} grant */
const selectBox = (grant) =>
  parts.tick(`select:${grant.id}`, "", selected.has(grant.id), (on) => {
    if (on) selected.add(grant.id);
    else selected.delete(grant.id);
    redraw();
  }, `Select ${grant.path} of ${grant.client}`);

/** @param {{ grant: Grant, at_ms: number, restarted: number, note: string | null }} past */
const pastRow = ({ grant, at_ms, restarted, note }) =>
  parts.row(
    html`
      <div>${parts.granted(grant)}</div>
      ${parts.facts(html`<span class="badge allow">Revoked, verified ${clock(at_ms)}</span>`, grant.client, restarted > 0 ? `${count(restarted, "server")} restarted for it` : nothing)}
      ${note ? parts.warning(note) : nothing}`,
    undoButton(grant),
  );

/** @param {Grant} grant */
const lifetime = (grant) =>
  grant.expires_ms === null ? (grant.lifetime === "always" ? "until you revoke it" : grant.lifetime) : html`${grant.lifetime} (${parts.time(grant.expires_ms, "left")})`;
