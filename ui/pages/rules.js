// The rules in order, with their numbers of hits. A change is tested against recorded calls before it is saved.

import * as backend from "../backend.js";
import { html, nothing, repeat } from "../html.js";
import { managedRules } from "../managed_rules.js";
import * as parts from "../parts.js";
import { names, ruleOf, rulesIn, withRule } from "../rule_draft.js";
import { changeBar, current, edit, follow, isChanged, textEditor } from "../rule_editor.js";
import { draftForm } from "../rule_form.js";
import { ruleRow } from "../rule_row.js";
import { tryForm } from "../rule_try.js";
import { focusOn, redraw } from "../state.js";
import { FRAME } from "../texts/frame.js";
import { RULES } from "../texts/rules.js";

/** @typedef {import("../rule_draft.js").Draft} Draft */

/** @type {import("../types.js").Rules | null} */
let found = null;
let problem = "";
/** Hash of the rules that were loaded. */
let loaded = "";
/** @type {Draft | null} */
let draft = null;
/** True if the draft was made on another page. It is shown once the rules are loaded. */
let isNew = false;
/** Text of the rules that the draft is added to. */
let base = "";
/** Tools that a new rule can cover; empty if the rule is created from a call.
 * @type {import("../types.js").Rules["tools"]} */
let choices = [];

/** @type {import("../app.js").Page} */
export const rules = {
  id: "rules",
  name: FRAME.pages.rules,
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
  view(snapshot) {
    followPolicy(snapshot.status.policy);
    return html`
      ${parts.heading(FRAME.pages.rules, found ? addButton(found) : nothing)}
      ${problem ? parts.problem(RULES.unreadable(problem)) : nothing}
      ${found === null ? nothing : page(found, snapshot)}`;
  },
};

/** Reloads the rules after they were changed elsewhere. @param {string} policy */
function followPolicy(policy) {
  const isChanged = loaded !== "" && policy !== loaded;
  loaded = policy;
  if (isChanged) void rules.load?.().then(redraw);
}

/** @param {import("../types.js").Rules} all */
const addButton = (all) =>
  parts.button("add-rule", html`${parts.icon("plus")} ${RULES.add}`, () => addRule(all), { kind: isChanged() ? "" : "main", off: all.tools.length === 0 });

/**
 * @param {import("../types.js").Rules} all
 * @param {import("../types.js").Snapshot} snapshot
 */
const page = (all, snapshot) => html`
  ${managedRules(all.managed)}
  <p class="lead-in quiet">${RULES.text}</p>
  ${draft ? draftForm(draft, choices, setDraft) : nothing}
  ${changeBar(() => void reload(), drop)}
  ${all.findings.length > 0 ? findings(all.findings) : nothing}
  ${inOrder(all)}
  <p class="small quiet after">${all.own ? html`${RULES.from} ${parts.path(all.file)}.` : RULES.shipped} ${RULES.counted}</p>
  <div class="some">${tryForm(all, snapshot)}${textEditor()}</div>`;

/** @param {string[]} all */
const findings = (all) => html`
  <div class="card asks-card">
    <b>${RULES.findings(all.length)}</b>
    <ul>${all.map((one) => html`<li>${parts.coded(one)}</li>`)}</ul>
  </div>`;

async function reload() {
  draft = null;
  await rules.load?.();
  redraw();
}

/** Drops all changes. */
function drop() {
  draft = null;
  redraw();
}

/**
 * Returns the rules in order, including unsaved changes.
 * @param {import("../types.js").Rules} all
 */
function inOrder(all) {
  const shown = rulesIn(current()) ?? rulesIn(all.text) ?? [];
  if (shown.length === 0) return parts.group(parts.row(parts.emptyState("list-ordered", RULES.none, parts.button("add-first", RULES.addLong, () => addRule(all), { off: all.tools.length === 0 }))));
  const most = Math.max(...all.rules.map((one) => one.decided));
  return parts.group(repeat(shown, (rule) => rule.name, (rule, at) => ruleRow(rule, at, shown.length, all.rules.find(({ name }) => name === rule.name), most)), "rules");
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

/** @param {Draft} wanted */
function setDraft(wanted) {
  draft = wanted;
  write(wanted);
}

/** @param {Draft} wanted */
function write(wanted) {
  const text = withRule(base, ruleOf(wanted, names(base)));
  if (text !== null) edit(text);
  redraw();
}
