// Projects that the user declined to grant when asked: lists each denial, and undoes it.

import * as backend from "./backend.js";
import { nothing, html, repeat } from "./html.js";
import * as parts from "./parts.js";
import { askMeAgain } from "./restrictions.js";

/** @typedef {import("./types.js").Grant} Grant */

/** @param {Grant[]} noes */
export const declinedRows = (noes) =>
  noes.length === 0 ? nothing : html`
    <h2>Projects that you said no to</h2>
    ${parts.group(repeat(noes, (one) => one.id, row))}`;

/** @param {Grant} no */
const row = (no) =>
  parts.row(
    html`
      <div>${parts.path(no.path)}</div>
      <div>${parts.client(no.client)} did not get this project through ${parts.foreign(no.server)}, and you won't be asked about the whole folder again.</div>
      ${parts.facts(html`you said no ${parts.time(no.created_ms)}`)}`,
    askMeAgain(`undecline:${no.id}`, no.path, async () => {
      const [told] = await backend.revokeGrants([no.id]);
      if (!told || told.problem !== null) throw new Error(told?.problem ?? "this could not be verified");
    }),
  );
