// Filters, sorts and groups the list of grants. Pure functions.

import { PERMISSIONS } from "./texts/permissions.js";
import { folderOf } from "./words.js";

/** @typedef {import("./types.js").Grant} Grant */
/** @typedef {{ text: string, by: "folder" | "client", sort: "name" | "newest" | "used" | "ends" }} View */

/** Headings of grants that are not files or folders. */
const OTHER = PERMISSIONS.other;

/**
 * Returns the grants, without the declined projects in the same list.
 * @param {{ grants: Grant[] }} snapshot
 */
export const permissions = ({ grants }) => grants.filter((grant) => grant.kind !== "declined");

/**
 * Returns whether a grant applies, the reason if it does not, and whether the user can decide about it under Servers.
 * @param {Pick<Grant, "suspended" | "server_changed">} grant
 */
export function standing({ suspended, server_changed }) {
  if (suspended === null) return { applies: true, words: "", decide: false };
  if (server_changed) return { applies: false, words: PERMISSIONS.suspended(suspended), decide: true };
  return { applies: false, words: PERMISSIONS.notNow(suspended), decide: false };
}

/**
 * Returns the heading of a grant.
 * @param {Grant} grant
 * @param {View["by"]} by
 */
function heading(grant, by) {
  if (by === "client") return grant.client;
  return grant.kind === "host" || grant.kind === "tool" ? OTHER[grant.kind] : folderOf(grant.path, grant.kind);
}

/**
 * Returns the grants that contain all words, sorted by heading and then in the view's order.
 * @param {Grant[]} all
 * @param {View} view
 */
export function listed(all, view) {
  const words = view.text.toLowerCase().split(/\s+/).filter(Boolean);
  const has = (/** @type {Grant} */ grant) => {
    const text = [grant.path, grant.client, grant.server, grant.lifetime, ...grant.access].join(" ").toLowerCase();
    return words.every((word) => text.includes(word));
  };
  const order = ORDER[view.sort];
  return all
    .filter(has)
    .map((grant) => ({ grant, under: heading(grant, view.by) }))
    .sort((a, b) => compare(a.under, b.under) || order(a.grant, b.grant) || compare(a.grant.path, b.grant.path) || compare(a.grant.id, b.grant.id));
}

/**
 * Groups adjacent rows with the same heading. A folder with a single row needs no heading, because the row names the folder.
 * @param {{ grant: Grant, under: string }[]} rows
 * @param {View["by"]} by
 */
export function grouped(rows, by) {
  /** @type {{ under: string, key: string, grants: Grant[] }[]} */
  const groups = [];
  rows.forEach(({ grant, under }, at) => {
    const alone = by === "folder" && under.startsWith("/") && rows[at - 1]?.under !== under && rows[at + 1]?.under !== under;
    const heading = alone ? "" : under;
    const last = groups.at(-1);
    if (last?.under === heading) last.grants.push(grant);
    else groups.push({ under: heading, key: under, grants: [grant] });
  });
  return groups;
}

/** @type {Record<View["sort"], (a: Grant, b: Grant) => number>} */
const ORDER = {
  name: (a, b) => compare(a.path, b.path),
  newest: (a, b) => b.created_ms - a.created_ms,
  used: (a, b) => (b.last_used_ms ?? 0) - (a.last_used_ms ?? 0),
  ends: (a, b) => (a.expires_ms ?? Infinity) - (b.expires_ms ?? Infinity) || 0,
};

/**
 * @param {string} a
 * @param {string} b
 */
const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
