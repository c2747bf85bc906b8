// The rules, explained for a call, and edited with a dry run before saving.

import * as backend from "../backend.js";
import { html, live, nothing, repeat } from "../html.js";
import * as parts from "../parts.js";
import { movedRule, names, ruleOf, rulesIn, ruleThat, withoutRule, withRule } from "../rule_draft.js";
import { current, edit, editor, follow, isChanged } from "../rule_editor.js";
import { tryForm } from "../rule_try.js";
import { focusOn, redraw } from "../state.js";
import { count } from "../words.js";

/** @typedef {import("../types.js").Rule} Rule */

/** @type {import("../types.js").Rules | null} */
let found = null;
let problem = "";
/** @type {import("../rule_draft.js").Draft | null} */
let draft = null;
/** The draft was made on another page, and is shown once the rules are loaded. */
let isNew = false;
/** Rules that the draft's rule is added to. */
let base = "";
/** Tools that a rule made here can cover; empty if it is made from a call.
 * @type {import("../types.js").Rules["tools"]} */
let choices = [];

/** @type {import("../app.js").Page} */
export const rules = {
  id: "rules",
  name: "Rules",
  icon: "list-ordered",
  async load() {
    try {
      found = await backend.rules();
      problem = "";
      follow(found.text);
      if (isNew && draft) {
        base = current();
        write(draft);
      }
      if (isNew) focusOn("draft-then");
      isNew = false;
    } catch (failure) {
      problem = backend.sentence(failure);
    }
  },
  view: (snapshot) => html`
    <h1>Rules</h1>
    <p class="lead-in quiet">Rules are tried from the top; the first that matches decides. Anything no rule matches is denied. Your permissions are tried before the rules.</p>
    ${problem ? parts.problem(`The rules cannot be read: ${problem}`) : nothing}
    ${found === null ? nothing : page(found, snapshot)}`,
};

/**
 * @param {import("../types.js").Rules} all
 * @param {import("../types.js").Snapshot} snapshot
 */
const page = (all, snapshot) => html`
  ${all.findings.length > 0 ? html`<div class="card asks-card"><b>${count(all.findings.length, "thing")} to check</b><ul>${all.findings.map((one) => html`<li>${one.split("`").map((part, at) => (at % 2 === 1 ? html`<code>${part}</code>` : part))}</li>`)}</ul></div>` : nothing}
  ${tryForm(all, snapshot)}
  <h2>In order</h2>
  ${inOrder(all)}
  <p class="small quiet after">${all.own ? html`From ${parts.path(all.file)}` : "The rules that come with IronCurtain. Saving a change makes them your own."}. Decisions are counted over the last week.</p>
  <h2>Change the rules</h2>
  ${draft ? draftForm(draft) : html`<p class="some">${parts.button("add-rule", "Add a rule\u2026", () => addRule(all), { off: all.tools.length === 0 })}</p>`}
  ${isChanged() ? html`<p class="asks says" role="status">Changed, not saved. Try it on the record, then save it.</p>` : nothing}
  ${editor(() => void reload())}`;

async function reload() {
  draft = null;
  await rules.load?.();
  redraw();
}

/**
 * Returns the rules in order, including unsaved changes.
 * @param {import("../types.js").Rules} all
 */
function inOrder(all) {
  const shown = rulesIn(current()) ?? rulesIn(all.text) ?? [];
  return parts.group(repeat(shown, (rule) => rule.name, (rule, at) => ruleRow(rule, at, shown.length, all.rules.find(({ name }) => name === rule.name))), "rules");
}

/**
 * @param {{ name: string, description: string, then: string, text: string }} rule
 * @param {number} at
 * @param {number} of
 * @param {Rule | undefined} known
 */
const ruleRow = (rule, at, of, known) =>
  parts.row(
    html`
      <div><code>${rule.name}</code></div>
      <div>${rule.description}</div>
      ${parts.facts(known === undefined ? html`<span class="asks">new, not saved</span>` : known.decided === 0 ? "not used this week" : `decided ${count(known.decided, "call")}`, known && known.then !== rule.then ? html`<span class="asks">changed, not saved</span>` : nothing)}
      ${known ? known.findings.map((one) => parts.warning(one)) : nothing}
      <details><summary data-key="rule:${rule.name}">Show source</summary><pre tabindex="0">${rule.text}</pre></details>`,
    html`
      ${parts.select(`then:${rule.name}`, rule.then, [["allow", "Allows"], ["escalate", "Asks me"], ["deny", "Denies"]], (to) => change(ruleThat(current(), rule.name, to)), `What ${rule.name} does`)}
      <div class="both">
        ${parts.button(`earlier:${rule.name}`, "\u2191", () => change(movedRule(current(), rule.name, -1)), { label: `Move ${rule.name} earlier`, off: at === 0 })}
        ${parts.button(`later:${rule.name}`, "\u2193", () => change(movedRule(current(), rule.name, 1)), { label: `Move ${rule.name} later`, off: at === of - 1 })}
        ${parts.button(`remove:${rule.name}`, "Remove", () => change(withoutRule(current(), rule.name)), { label: `Remove ${rule.name}` })}
      </div>`,
    html`<span class="number">${at + 1}</span>${parts.thenBadge(rule.then)}`,
  );

/** @param {string | null} text */
function change(text) {
  if (text !== null) edit(text);
  redraw();
}

/**
 * Starts a rule for a tool.
 * @param {import("../types.js").Rules} all
 */
function addRule({ tools }) {
  const [first] = tools;
  if (!first) return;
  base = current();
  draft = { server: first.server, tool: first.tools[0] ?? "", path: null, then: "escalate", reach: "path" };
  choices = tools;
  write(draft);
  focusOn("draft-server");
}

/**
 * Opens the editor with a rule for a recorded call.
 * @param {import("../types.js").Call} call
 */
export function draftRule(call) {
  draft = { server: call.server ?? "", tool: call.tool ?? "", path: call.paths[0] ?? null, then: "escalate", reach: "path" };
  choices = [];
  isNew = true;
  location.hash = "#rules";
}

/** @param {import("../rule_draft.js").Draft} wanted */
function write(wanted) {
  change(withRule(base, ruleOf(wanted, names(base))));
}

/** @param {import("../rule_draft.js").Draft} wanted */
function draftForm(wanted) {
  const set = (/** @type {Partial<import("../rule_draft.js").Draft>} */ change) => {
    draft = { ...wanted, ...change };
    write(draft);
    redraw();
  };
  const tools = choices.find(({ server }) => server === wanted.server)?.tools ?? [];
  /** @type {[string, string][]} */
  const reaches = wanted.path === null ? [["tool", "wherever it is used"]] : [["path", wanted.path], ["folder", "its folder and everything in it"], ["tool", "wherever it is used"]];
  return html`
    <div class="card">
      <p>A rule for <code>${wanted.tool}</code> of ${parts.foreign(wanted.server)}, before all others:</p>
      <div class="form">
        ${choices.length > 0 ? html`
          ${parts.field("Server", parts.select("draft-server", wanted.server, choices.map(({ server }) => [server, server]), (to) => set({ server: to, tool: choices.find(({ server }) => server === to)?.tools[0] ?? "" })))}
          ${parts.field("Tool", parts.select("draft-tool", wanted.tool, tools.map((one) => [one, one]), (to) => set({ tool: to })))}
          ${parts.field("Only below", html`<input type="text" class="mono" spellcheck="false" data-key="draft-path" placeholder="~/Documents" .value=${live(wanted.path ?? "")} @input=${(/** @type {Event} */ event) => set({ path: parts.valueOf(event) || null, reach: "path" })}>`, "Empty for everywhere.")}` : nothing}
        ${parts.field("Then", parts.select("draft-then", wanted.then, [["escalate", "ask me"], ["deny", "deny"], ["allow", "allow without asking"]], (to) => set({ then: /** @type {any} */ (to) })))}
        ${choices.length > 0 ? nothing : parts.field("Where", parts.select("draft-reach", wanted.reach, reaches, (to) => set({ reach: /** @type {any} */ (to) })))}
      </div>
    </div>`;
}
