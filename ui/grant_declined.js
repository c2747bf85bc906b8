// Lists the projects that the user declined to grant, and lets the user undo each denial.

import * as backend from "./backend.js";
import { nothing, html, repeat } from "./html.js";
import * as parts from "./parts.js";
import { askMeAgain } from "./restrictions.js";
import { PERMISSIONS } from "./texts/permissions.js";

/** @typedef {import("./types.js").Grant} Grant */

/** @param {Grant[]} noes */
export const declinedRows = (noes) =>
  noes.length === 0 ? nothing : html`
    ${parts.section(PERMISSIONS.declined)}
    ${parts.group(repeat(noes, (one) => one.id, row))}`;

/** @param {Grant} no */
const row = (no) =>
  parts.row(
    html`
      ${parts.title(parts.path(no.path))}
      ${parts.facts(parts.client(no.client), PERMISSIONS.declinedText(no.server), html`${PERMISSIONS.saidNo} ${parts.time(no.created_ms)}`)}`,
    askMeAgain(`undecline:${no.id}`, no.path, async () => {
      const [result] = await backend.revokeGrants([no.id]);
      if (!result || result.problem !== null) throw new Error(result?.problem ?? PERMISSIONS.unverified);
    }),
    parts.icon("square-x", "bad"),
  );
