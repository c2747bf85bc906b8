// One permission as a row, with its details and its selection.

import { actButton } from "./action_button.js";
import { changePanel } from "./grant_change.js";
import { standing } from "./grant_list.js";
import { html, nothing } from "./html.js";
import { closeMenu } from "./menu.js";
import { isOpen, openable, toggle } from "./opened.js";
import * as parts from "./parts.js";
import { revoked, revokeErrors, revokeGrants, revokeButton, undoButton } from "./revoke.js";
import { redraw } from "./state.js";
import { PERMISSIONS } from "./texts/permissions.js";
import { clock, list } from "./words.js";

/** @typedef {import("./types.js").Grant} Grant */

/** Ids of the selected grants. @type {Set<string>} */
export const selected = new Set();
let selecting = false;

export const isSelecting = () => selecting;

/** Starts or ends selecting rows. @param {boolean} on */
export function leaveSelection(on) {
  selecting = on;
  selected.clear();
  redraw();
}

/** @param {Grant[]} grants @param {boolean} on */
export function selectAll(grants, on) {
  grants.forEach((grant) => (on ? selected.add(grant.id) : selected.delete(grant.id)));
  redraw();
}

/**
 * Returns a button that revokes several grants after a confirmation.
 * @param {string} key
 * @param {string} ready
 * @param {Grant[]} grants
 * @param {{ label?: string, kind?: string }} [more]
 */
export const revokeManyButton = (key, ready, grants, { label, kind } = {}) =>
  actButton({
    key,
    ready,
    label,
    kind,
    ...PERMISSIONS.revokeMany,
    again: true,
    off: grants.length === 0,
    says: PERMISSIONS.revokeSays(grants.length, list([...new Set(grants.map((grant) => grant.client))].sort())),
    act: async () => {
      await revokeGrants(grants.map((grant) => grant.id));
      selected.clear();
      const left = grants.filter((grant) => revokeErrors.has(grant.id)).length;
      if (left > 0) throw new Error(PERMISSIONS.someLeft(left));
      closeMenu();
    },
  });

/** @type {Record<Grant["kind"], string>} */
const ICONS = { file: "file", folder: "folder", host: "globe", tool: "wrench", declined: "square-x" };

/**
 * @param {Grant} grant
 * @param {boolean} underAgent True if a heading names the agent.
 */
export function grantRow(grant, underAgent) {
  const past = revoked.get(grant.id);
  if (past) return pastRow(past);
  const { applies, words, decide } = standing(grant);
  const problem = revokeErrors.get(grant.id);
  const key = `grant:${grant.id}`;
  return openable(key, PERMISSIONS.details(grant.path, grant.client), {
    before: html`${selecting ? selectBox(grant) : nothing}${parts.icon(ICONS[grant.kind], applies ? "" : "asks")}`,
    what: html`
      ${parts.title(parts.granted(grant), access(grant))}
      ${parts.facts(underAgent ? nothing : parts.client(grant.client), parts.foreign(grant.server), lifetime(grant), grant.last_used_ms === null ? PERMISSIONS.neverUsed : html`${PERMISSIONS.used} ${parts.time(grant.last_used_ms)}`)}
      ${applies ? nothing : parts.warning(decide ? `${words}.` : words)}
      ${grant.ending ? parts.warning(PERMISSIONS.beingRevoked(grant.ending)) : nothing}
      ${grant.unused_days !== null ? parts.warning(PERMISSIONS.unused(grant.unused_days)) : nothing}
      ${problem === undefined ? nothing : parts.problem(PERMISSIONS.notRevoked(problem))}`,
    act: html`
      ${decide ? html`<a class="button" href="#servers/installed/${encodeURIComponent(grant.server)}" data-key="decide:${grant.id}" aria-label=${PERMISSIONS.decideLabel(grant.server)}>${PERMISSIONS.decide}</a>` : nothing}
      ${grant.ending ? nothing : revokeButton(grant.id, grant.path)}`,
  }, () => details(grant, applies, decide, () => { if (isOpen(key)) toggle(key); }));
}

/**
 * @param {Grant} grant
 * @param {boolean} applies
 * @param {boolean} decide
 * @param {() => void} close
 */
const details = (grant, applies, decide, close) => html`
  <dl>
    <dt>${applies ? PERMISSIONS.may : PERMISSIONS.could}</dt><dd>${list(grant.access)} ${PERMISSIONS.through(grant.server)}${grant.kind === "folder" ? html`, ${PERMISSIONS.inIt}` : nothing}</dd>
    <dt>${PERMISSIONS.origin}</dt><dd>${grant.provenance} \u00b7 ${parts.time(grant.created_ms)}</dd>
    <dt>${PERMISSIONS.activity}</dt><dd>${PERMISSIONS.uses(grant.uses)}</dd>
  </dl>
  ${!decide && !grant.ending && (grant.kind === "file" || grant.kind === "folder") ? changePanel(grant, close) : nothing}`;

/** @param {Grant} grant */
const access = (grant) => (grant.kind === "host" ? parts.chip(PERMISSIONS.connects) : grant.kind === "tool" ? parts.chip(PERMISSIONS.use) : parts.accessChip(grant.access));

/** @param {Grant} grant */
const selectBox = (grant) =>
  parts.tick(`select:${grant.id}`, "", selected.has(grant.id), (on) => selectAll([grant], on), PERMISSIONS.selectOne(grant.path, grant.client));

/** @param {{ grant: Grant, at_ms: number, restarted: number, note: string | null }} past */
const pastRow = ({ grant, at_ms, restarted, note }) =>
  parts.row(
    html`
      <div>${parts.granted(grant)}</div>
      ${parts.facts(html`<b>${PERMISSIONS.revokedAt(clock(at_ms))}</b>`, grant.client, restarted > 0 ? PERMISSIONS.restarted(restarted) : nothing)}
      ${note ? parts.warning(note) : nothing}`,
    undoButton(grant),
    parts.icon("square-x"),
  );

/** @param {Grant} grant */
const lifetime = (grant) =>
  grant.expires_ms === null ? (grant.lifetime === "always" ? PERMISSIONS.untilRevoked : grant.lifetime) : parts.time(grant.expires_ms, "left");
