// Edits the rules as text. A change is first tested against recorded calls, and is saved exactly as it was tested.

import { actButton } from "./action_button.js";
import * as backend from "./backend.js";
import { html, live, nothing } from "./html.js";
import * as parts from "./parts.js";
import { redraw } from "./state.js";
import { RULES } from "./texts/rules.js";

/** The edited text, the saved text, and the text that was tried. */
let text = "";
let inForce = "";
let tried = "";
/** @type {import("./types.js").DryRun | null} */
let run = null;

/**
 * Shows the saved rules, unless the user is editing.
 * @param {string} now
 */
export function follow(now) {
  if (text === inForce) text = now;
  // A change is compared with the rules in force, so it has to be tried again.
  if (inForce !== now) run = null;
  inForce = now;
}

/** Returns the edited text. */
export const current = () => text;

/** Returns whether there are unsaved changes. */
export const isChanged = () => text !== inForce;

/**
 * Replaces the edited text.
 * @param {string} changed
 */
export function edit(changed) {
  text = changed;
  run = null;
}

/**
 * Returns the bar that tries, saves or undoes changes, or nothing if there are none.
 * @param {() => void} saved Called after the rules are saved.
 * @param {() => void} dropped Called after the changes are undone.
 */
export function changeBar(saved, dropped) {
  if (!isChanged()) return nothing;
  const ready = run !== null && run.problem === null && tried === text;
  const drop = () => {
    edit(inForce);
    dropped();
  };
  return html`
    <section class="card asks-card" aria-label=${RULES.changed}>
      <p role="status"><b>${RULES.changed}.</b> ${RULES.changedText}</p>
      <div class="both start">
        ${actButton({ key: "dry-run", ...RULES.dryRun, again: true, kind: ready ? "" : "main", act: dryRun })}
        ${actButton({
          key: "save-rules",
          ...RULES.save,
          again: true,
          off: !ready,
          kind: ready ? "main" : "",
          says: run ? effect(run) : "",
          act: async () => {
            await backend.saveRules(text, inForce);
            inForce = text;
            run = null;
            saved();
          },
        })}
        ${parts.button("drop-rules", RULES.undoAll, drop)}
      </div>
      <div role="status">${run ? outcome(run) : nothing}</div>
    </section>`;
}

/** Returns the text editor for the rules. */
export function textEditor() {
  const typed = (/** @type {Event} */ event) => {
    edit(parts.valueOf(event));
    redraw();
  };
  return html`
    <details class="card">
      <summary data-key="edit">${RULES.editText}</summary>
      <textarea class="mono code" rows="16" spellcheck="false" data-key="rules-text" aria-label=${RULES.asText} .value=${live(text)} @input=${typed}></textarea>
    </details>`;
}

async function dryRun() {
  const wanted = text;
  const done = await backend.tryRules(wanted);
  // The result applies only to the text that was tried.
  if (text === wanted) [run, tried] = [done, wanted];
}

/**
 * Describes the effect of saving.
 * @param {import("./types.js").DryRun} done
 */
function effect({ looser, stricter, calls }) {
  const sum = (/** @type {import("./types.js").Changed[]} */ all) => all.reduce((n, one) => n + one.count, 0);
  return RULES.effect(calls, sum(looser), sum(stricter));
}

/** @param {import("./types.js").DryRun} done */
function outcome(done) {
  if (done.problem !== null) return parts.problem(RULES.refused(done.problem));
  /** @type {[string, string[]][]} */
  const lists = [[RULES.added, done.added], [RULES.gone, done.removed], [RULES.different, done.changed]];
  return html`
    <p class="says">${effect(done)}</p>
    ${lists.map(([word, rules]) => (rules.length > 0 ? html`<p class="small">${word}: ${rules.map((rule) => html`<code>${rule}</code> `)}</p>` : nothing))}
    ${done.findings.map((one) => parts.warning(one))}
    ${changes(RULES.looser, "bad", done.looser)}${changes(RULES.stricter, "good", done.stricter)}
    ${done.not_judged > 0 ? html`<p class="small quiet">${RULES.notJudged(done.not_judged)}</p>` : nothing}`;
}

/**
 * @param {string} word
 * @param {string} kind
 * @param {import("./types.js").Changed[]} all
 */
const changes = (word, kind, all) =>
  all.length === 0 ? nothing : html`
    <h3 class="some ${kind}">${word}</h3>
    ${parts.group(all.map((one) => parts.row(html`
      <div><code>${one.tool}</code> ${RULES.of} ${parts.foreign(one.server)}, ${RULES.calls(one.count)}: ${RULES.was} ${one.then} ${RULES.now} <b>${one.now}</b></div>
      ${parts.facts(parts.foreign(one.example), one.reason)}`)))}`;
