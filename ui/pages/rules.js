// What the rules say, why a call comes out as it does, and what a change would do before it is made.

import * as backend from "../backend.js";
import { html, nothing } from "../html.js";
import * as parts from "../parts.js";
import { names, ruleOf, withRule } from "../rule_draft.js";
import { edit, editor, follow } from "../rule_editor.js";
import { tryForm } from "../rule_try.js";
import { focusOn, redraw } from "../state.js";
import { count } from "../words.js";

/** @typedef {import("../types.js").Rule} Rule */

/** @type {import("../types.js").Rules | null} */
let found = null;
let problem = "";
/** @type {import("../rule_draft.js").Draft | null} */
let draft = null;
/** The draft was made on another page, and is shown when the rules are read. */
let isNew = false;

/** @type {import("../app.js").Page} */
export const rules = {
  id: "rules",
  name: "Rules",
  async load() {
    try {
      found = await backend.rules();
      problem = "";
      follow(found.text);
      if (draft) write(draft);
      if (isNew) focusOn("draft-then");
      isNew = false;
    } catch (failure) {
      problem = backend.sentence(failure);
    }
  },
  view: (snapshot) => html`
    <h1>Rules</h1>
    <p class="lead-in quiet">A call is judged by the first rule that covers it. What no rule covers is denied; what you granted comes before the rules.</p>
    ${problem ? parts.problem(`The rules cannot be read: ${problem}`) : nothing}
    ${found === null ? nothing : page(found, snapshot)}`,
};

/**
 * @param {import("../types.js").Rules} all
 * @param {import("../types.js").Snapshot} snapshot
 */
const page = (all, snapshot) => html`
  ${all.findings.length > 0 ? html`<div class="card asks-card"><b>${count(all.findings.length, "thing")} to look at</b><ul>${all.findings.map((one) => html`<li>${one}</li>`)}</ul></div>` : nothing}
  ${tryForm(all, snapshot)}
  <h2>In order</h2>
  ${parts.group(all.rules.map((rule, at) => ruleRow(rule, at)), "rules")}
  <p class="small quiet after">${all.own ? html`From ${parts.path(all.file)}` : "The rules that come with IronCurtain; the first change you save makes them yours."}. Decisions are counted over the last week.</p>
  <h2>Change the rules</h2>
  ${draft ? draftForm(draft) : nothing}
  ${editor(() => void reload())}`;

async function reload() {
  draft = null;
  await rules.load?.();
  redraw();
}

/**
 * @param {Rule} rule
 * @param {number} at
 */
const ruleRow = (rule, at) =>
  parts.row(
    html`
      <div><code>${rule.name}</code></div>
      <div>${rule.description}</div>
      ${parts.facts(rule.decided === 0 ? "decided nothing" : `decided ${count(rule.decided, "call")}`)}
      ${rule.findings.map((one) => parts.warning(one))}
      <details><summary data-key="rule:${rule.name}">As it is written</summary><pre tabindex="0">${rule.text}</pre></details>`,
    nothing,
    html`<span class="number">${at + 1}</span>${parts.thenBadge(rule.then)}`,
  );

/**
 * Opens the editor with a rule made from a call.
 * @param {import("../types.js").Call} call
 */
export function draftRule(call) {
  draft = { server: call.server ?? "", tool: call.tool ?? "", path: call.paths[0] ?? null, then: "escalate", reach: "path" };
  isNew = true;
  location.hash = "#rules";
}

/** @param {import("../rule_draft.js").Draft} wanted */
function write(wanted) {
  if (!found) return;
  const text = withRule(found.text, ruleOf(wanted, names(found.text)));
  if (text !== null) edit(text);
}

/** @param {import("../rule_draft.js").Draft} wanted */
function draftForm(wanted) {
  const set = (/** @type {Partial<import("../rule_draft.js").Draft>} */ change) => {
    draft = { ...wanted, ...change };
    write(draft);
    redraw();
  };
  /** @type {[string, string][]} */
  const reaches = wanted.path === null ? [["tool", "wherever it is used"]] : [["path", wanted.path], ["folder", "its folder and all below"], ["tool", "wherever it is used"]];
  return html`
    <div class="card">
      <p>A rule for <code>${wanted.tool}</code> of ${parts.foreign(wanted.server)}, before all others:</p>
      <div class="form">
        ${parts.field("Then", parts.select("draft-then", wanted.then, [["escalate", "ask me"], ["deny", "deny"], ["allow", "allow without asking"]], (to) => set({ then: /** @type {any} */ (to) })))}
        ${parts.field("Where", parts.select("draft-reach", wanted.reach, reaches, (to) => set({ reach: /** @type {any} */ (to) })))}
      </div>
    </div>`;
}
