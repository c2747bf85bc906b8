// Everything that was granted, and the way to take it back.

import { takeBackButton } from "../acts.js";
import { el } from "../dom.js";
import * as parts from "../parts.js";
import { count, list } from "../words.js";

export function granted({ snapshot, redraw }) {
  return [
    el("h1", {}, "What you granted"),
    parts.group(
      snapshot.grants.map((grant) => grantRow(grant, snapshot.home, redraw)),
      parts.empty("Nothing is granted.", "When you allow more than a single call, the folder, file, host or tool is listed here until you take it back or it ends."),
    ),
  ];
}

function grantRow(grant, home, redraw) {
  const used = grant.last_used_ms === null ? "never used" : [count(grant.uses, "use"), ", last ", parts.time(grant.last_used_ms)];
  return parts.row(
    [
      el("div", {}, grant.kind === "tool" ? parts.foreign(grant.path) : parts.path(grant.path, home), grant.kind === "folder" && el("span", { class: "quiet small" }, " and below")),
      el("div", {}, parts.client({ name: grant.client }), ` may ${list(grant.access)} through `, parts.foreign(grant.server), ", ", lifetime(grant)),
      parts.facts(el("span", {}, grant.provenance), parts.time(grant.created_ms), el("span", {}, used)),
      grant.suspended && el("div", { class: "small asks" }, `\u26a0 Does not apply now: ${grant.suspended}`),
      grant.ending && el("div", { class: "small asks" }, `\u26a0 Being taken back: ${grant.ending}`),
      grant.unused_days !== null && el("div", { class: "small asks" }, `Nothing has used it for ${count(grant.unused_days, "day")}.`),
    ],
    grant.ending ? null : takeBackButton(grant.id, grant.path, redraw),
  );
}

const lifetime = (grant) =>
  grant.expires_ms === null ? grant.lifetime : [grant.lifetime, " (", parts.time(grant.expires_ms, "left"), ")"];
