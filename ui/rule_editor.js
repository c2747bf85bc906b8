// Edits the rules as text: a change is tried on the record first, and saved only as it was tried.

import { actButton } from "./action_button.js";
import * as backend from "./backend.js";
import { html, live, nothing } from "./html.js";
import * as parts from "./parts.js";
import { redraw } from "./state.js";
import { count } from "./words.js";

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
 * @param {() => void} saved Called after the rules are saved.
 */
export function editor(saved) {
  const changed = isChanged();
  const ready = changed && run !== null && run.problem === null && tried === text;
  const typed = (/** @type {Event} */ event) => {
    edit(parts.valueOf(event));
    redraw();
  };
  return html`
    <details class="card" ?open=${changed}>
      <summary data-key="edit">${changed ? "Your change, as text" : "Edit as text"}</summary>
      <textarea class="mono code" rows="16" spellcheck="false" data-key="rules-text" aria-label="The rules as text" .value=${live(text)} @input=${typed}></textarea>
      <div class="both start">
        ${actButton({ key: "dry-run", ready: "Try it on the record", going: "Judging\u2026", done: "Tried", failed: "Not tried", again: true, kind: "main", off: !changed, act: dryRun })}
        ${actButton({
          key: "save-rules",
          ready: "Save",
          yes: "Save the rules",
          going: "Saving\u2026",
          done: "Saved",
          failed: "Not saved",
          again: true,
          off: !ready,
          says: run ? effect(run) : "",
          act: async () => {
            await backend.saveRules(text, inForce);
            inForce = text;
            run = null;
            saved();
          },
        })}
        ${changed ? parts.button("drop-rules", "Undo all changes", () => { edit(inForce); redraw(); }) : nothing}
      </div>
      <div role="status">${run ? outcome(run) : nothing}</div>
    </details>`;
}

async function dryRun() {
  const wanted = text;
  run = await backend.tryRules(wanted);
  tried = wanted;
}

/**
 * Describes the effect of saving.
 * @param {import("./types.js").DryRun} done
 */
function effect({ looser, stricter, calls }) {
  const sum = (/** @type {import("./types.js").Changed[]} */ all) => all.reduce((n, one) => n + one.count, 0);
  return `From now on every call is judged by these rules. Of ${count(calls, "call")} of the last week, ${sum(looser).toLocaleString("en")} would have been looser and ${sum(stricter).toLocaleString("en")} stricter.`;
}

/** @param {import("./types.js").DryRun} done */
function outcome(done) {
  if (done.problem !== null) return parts.problem(`These rules would be refused: ${done.problem}`);
  const lists = [["New", done.added], ["Gone", done.removed], ["Changed", done.changed]];
  return html`
    <p class="says">${effect(done)}</p>
    ${lists.map(([word, rules]) => rules && rules.length > 0 ? html`<p class="small">${word}: ${/** @type {string[]} */ (rules).map((rule) => html`<code>${rule}</code> `)}</p>` : nothing)}
    ${done.findings.map((one) => parts.warning(one))}
    ${changes("Looser", "bad", done.looser)}${changes("Stricter", "good", done.stricter)}
    ${done.not_judged > 0 ? html`<p class="small quiet">${count(done.not_judged, "call")} could not be judged again.</p>` : nothing}`;
}

/**
 * @param {string} word
 * @param {string} kind
 * @param {import("./types.js").Changed[]} all
 */
const changes = (word, kind, all) =>
  all.length === 0 ? nothing : html`
    <h3 class=${kind}>${word}</h3>
    ${parts.group(all.map((one) => parts.row(html`
      <div><code>${one.tool}</code> of ${parts.foreign(one.server)}, ${count(one.count, "call")}: from ${one.then} to <b>${one.now}</b></div>
      ${parts.facts(parts.foreign(one.example), one.reason)}`)))}`;
