// Tests a call against the saved rules, and shows the decision and its reason.

import * as backend from "./backend.js";
import { html, live, nothing } from "./html.js";
import * as parts from "./parts.js";
import { redraw } from "./state.js";
import { RULES } from "./texts/rules.js";

/** @type {import("./types.js").TriedCall} */
const call = { server: "", tool: "", arguments: '{ "path": "~/Documents/notes.txt" }', client: null };
/** @type {import("./types.js").Explained | null} */
let verdict = null;
let problem = "";
/** Number of changes to the form. A verdict applies only to the form that was judged. */
let changes = 0;

/**
 * @param {import("./types.js").Rules} rules
 * @param {import("./types.js").Snapshot} snapshot
 */
export function tryForm({ tools }, { clients }) {
  const server = tools.find((one) => one.server === call.server) ?? tools[0];
  const tool = server?.tools.includes(call.tool) ? call.tool : (server?.tools[0] ?? "");
  const whole = { ...call, server: server?.server ?? "", tool };
  return html`
    <details class="card">
      <summary data-key="try">${RULES.tryCall}</summary>
      <div class="form">
        ${parts.field(RULES.server, parts.select("try-server", whole.server, tools.map((one) => [one.server, one.server]), (to) => set({ server: to })))}
        ${parts.field(RULES.tool, parts.select("try-tool", tool, server?.tools.map((one) => [one, one]) ?? [], (to) => set({ tool: to })))}
        ${parts.field(RULES.tryWith, parts.select("try-client", call.client ?? "", [["", RULES.noAgent], .../** @type {[string, string][]} */ (clients.map((one) => [one.key, one.name]))], (to) => set({ client: to || null })))}
      </div>
      ${parts.field(RULES.arguments, html`<textarea class="mono" rows="3" spellcheck="false" data-key="try-arguments" .value=${live(call.arguments)} @input=${(/** @type {Event} */ event) => set({ arguments: parts.valueOf(event) })}></textarea>`)}
      <div class="both start">${parts.button("try-it", RULES.judge, () => void judge(whole), { kind: "main", off: tool === "" })}</div>
      <div role="status">${verdict ? verdictView(verdict) : nothing}</div>
      ${problem ? parts.problem(RULES.notJudgedBecause(problem)) : nothing}
    </details>`;
}

/** @param {Partial<typeof call>} change */
function set(change) {
  Object.assign(call, change);
  changes += 1;
  verdict = null;
  problem = "";
  redraw();
}

/** @param {typeof call} whole */
async function judge(whole) {
  const asked = ++changes;
  const answer = await backend.outcome(backend.explain(whole));
  if (asked !== changes) return;
  verdict = answer.value;
  problem = answer.problem;
  redraw();
}

/** @param {import("./types.js").Explained} explained */
const verdictView = ({ decision, by, reason, paths, steps }) => html`
  <p class="says">${parts.badge(decision)} <b>${RULES.verdicts[decision]}</b> ${RULES.by} <code>${by}</code>: ${parts.foreign(reason)}</p>
  ${paths.length > 0 ? html`<ul class="small quiet">${paths.map((one) => html`<li>${parts.foreign(one)}</li>`)}</ul>` : nothing}
  <ol class="steps">${steps.map((step) => html`
    <li>
      <div>${parts.foreign(step.about)}</div>
      ${parts.facts(parts.badge(step.decision), step.by)}
      ${step.passed.length > 0 ? html`<details><summary>${RULES.passed(step.passed.length)}</summary><ul class="small">${step.passed.map(({ rule, why }) => html`<li><code>${rule}</code>: ${why}</li>`)}</ul></details>` : nothing}
    </li>`)}</ol>`;
