// A row of the activity log: a call with its decision and outcome, and all recorded details when expanded.

import { html, nothing } from "./html.js";
import * as parts from "./parts.js";

/** Returns the summary without the decision, which the badge shows. @param {string} summary */
const said = (summary) => summary.replace(/^(?:Allowed|Denied): (.)/u, (_, first) => first.toUpperCase());

/**
 * @param {import("./types.js").Call} call
 * @param {{ open: boolean, toggle: () => void, acts: unknown }} [detail] Given if the row can be expanded.
 */
export function callRow(call, detail) {
  const what = html`
    <div>${said(call.summary)}${call.outcome ? html`<span class="quiet"> \u00b7 ${call.outcome.toLowerCase()}</span>` : nothing}</div>
    ${call.paths.map((one) => html`<div>${parts.path(one)}</div>`)}
    ${parts.facts(
      call.client ? html`${parts.foreign(call.client)}${call.server ? html` \u2192 ${parts.foreign(call.server)}` : nothing}` : nothing,
      call.tool ? html`<code>${call.tool}</code>` : nothing,
    )}
    ${detail?.open ? details(call, detail.acts) : nothing}`;
  const more = detail
    ? parts.button(`call:${call.seq}`, detail.open ? "Less" : "More", detail.toggle, {
        kind: "plain",
        expanded: detail.open,
        label: `${detail.open ? "Less" : "More"} about ${call.summary}`,
      })
    : nothing;
  return parts.row(what, more, html`<span class="when">${parts.time(call.time_ms)}</span>${parts.badge(call.decision, call.event)}`);
}

/**
 * @param {import("./types.js").Call} call
 * @param {unknown} acts
 */
const details = (call, acts) => html`
  <dl class="record">${call.details.map(([name, value]) => html`<dt>${name}</dt><dd>${value.includes("\n") ? html`<pre tabindex="0">${value}</pre>` : parts.foreign(value)}</dd>`)}</dl>
  <div class="both start">${acts}</div>`;
