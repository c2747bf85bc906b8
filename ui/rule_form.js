// The form for a new rule.

import { html, live, nothing } from "./html.js";
import * as parts from "./parts.js";
import { RULES } from "./texts/rules.js";

/** @typedef {import("./rule_draft.js").Draft} Draft */

/**
 * @param {Draft} wanted
 * @param {import("./types.js").Rules["tools"]} choices Tools to choose from; empty if the rule is made from a call.
 * @param {(draft: Draft) => void} setDraft
 */
export function draftForm(wanted, choices, setDraft) {
  const set = (/** @type {Partial<Draft>} */ change) => setDraft({ ...wanted, ...change });
  /** @type {[string, string][]} */
  const reaches = wanted.path === null ? [["tool", RULES.anywhere]] : [["path", wanted.path], ["folder", RULES.inFolder], ["tool", RULES.anywhere]];
  return html`
    <section class="card" aria-label=${RULES.draft}>
      <h2>${RULES.draft}</h2>
      ${choices.length > 0 ? nothing : html`<p>${RULES.draftOf} <code>${wanted.tool}</code> ${RULES.draftServer} ${parts.foreign(wanted.server)}</p>`}
      <div class="form">
        ${choices.length > 0 ? covers(wanted, choices, set) : nothing}
        ${parts.field(RULES.then, parts.select("draft-then", wanted.then, [["escalate", RULES.askMe], ["deny", RULES.deny], ["allow", RULES.allow]], (to) => set({ then: /** @type {any} */ (to) })))}
        ${choices.length > 0 ? nothing : parts.field(RULES.where, parts.select("draft-reach", wanted.reach, reaches, (to) => set({ reach: /** @type {any} */ (to) })))}
      </div>
    </section>`;
}

/**
 * @param {Draft} wanted
 * @param {import("./types.js").Rules["tools"]} choices
 * @param {(change: Partial<Draft>) => void} set
 */
function covers(wanted, choices, set) {
  const tools = (/** @type {string} */ of) => choices.find(({ server }) => server === of)?.tools ?? [];
  return html`
    ${parts.field(RULES.server, parts.select("draft-server", wanted.server, choices.map(({ server }) => [server, server]), (to) => set({ server: to, tool: tools(to)[0] ?? "" })))}
    ${parts.field(RULES.tool, parts.select("draft-tool", wanted.tool, tools(wanted.server).map((one) => [one, one]), (to) => set({ tool: to })))}
    ${parts.field(RULES.below, html`<input type="text" class="mono" spellcheck="false" data-key="draft-path" placeholder=${RULES.belowPlaceholder} .value=${live(wanted.path ?? "")} @input=${(/** @type {Event} */ event) => set({ path: parts.valueOf(event) || null, reach: "path" })}>`, RULES.belowHint)}`;
}
