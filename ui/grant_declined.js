// Projects that the person said no to when they were proposed: each no is listed, and taken back.

import * as backend from "./backend.js";
import { nothing, html, repeat } from "./html.js";
import * as parts from "./parts.js";
import { askMeAgain } from "./stops.js";

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
      <div>${parts.client(no.client)} is not given it through ${parts.foreign(no.server)}, and you are not asked about the whole of it again.</div>
      ${parts.facts(html`you said no ${parts.time(no.created_ms)}`)}`,
    askMeAgain(`undecline:${no.id}`, no.path, async () => {
      const [told] = await backend.takeBack([no.id]);
      if (!told || told.problem !== null) throw new Error(told?.problem ?? "nothing proves it");
    }),
  );
