// Adding a server that is not in the list: by its package, its address, or what its makers print. Shown whole before it is written.

import { actButton } from "./acts.js";
import * as backend from "./backend.js";
import { html, live, nothing } from "./html.js";
import * as parts from "./parts.js";
import { redraw } from "./state.js";

let what = "";
let name = "";
/** @type {import("./types.js").PlannedServer | null} */
let planned = null;
let told = "";

/** @param {() => Promise<void>} added What to do when one was added. */
export const addForm = (added) => html`
  <details class="card">
    <summary data-key="add-other">Add another one</summary>
    ${parts.field("What", html`<textarea class="mono" rows="4" spellcheck="false" data-key="add-what" placeholder="npm:NAME, pypi:NAME, https://… or what its makers print" .value=${live(what)} @input=${(/** @type {Event} */ event) => set({ what: parts.valueOf(event) })}></textarea>`, "A package, an address, or the { \u2026 } that its makers print for agent clients.")}
    <div class="form">${parts.field("Name", html`<input type="text" data-key="add-name" .value=${live(name)} @input=${(/** @type {Event} */ event) => set({ name: parts.valueOf(event) })}>`, "Empty for its own.")}</div>
    <div class="both start">
      ${actButton({ key: "plan-server", ready: "Show what would be added", going: "Looking\u2026", done: "Looked", failed: "Not possible", again: true, kind: "main", off: what.trim() === "", act: async () => { told = ""; planned = await backend.planServer({ what, name }); } })}
    </div>
    ${planned ? plan(planned, added) : nothing}
    ${told ? html`<p class="small good" role="status">${told}</p>` : nothing}
  </details>`;

/** @param {{ what?: string, name?: string }} change */
function set(change) {
  what = change.what ?? what;
  name = change.name ?? name;
  planned = null;
  redraw();
}

/**
 * @param {import("./types.js").PlannedServer} one
 * @param {() => Promise<void>} added
 */
const plan = (one, added) => html`
  <div class="panel" role="group" aria-label="What would be added">
    <h3>${parts.foreign(one.name)}</h3>
    <ul class="small">${one.reaches.map((words) => html`<li>${words}</li>`)}</ul>
    <pre tabindex="0" aria-label="Its entry">${one.entry}</pre>
    ${one.plain_values ? parts.warning("A value stands there in plain words. A key is safer as a secret: keep it below, and write keyring:NAME in its place.") : nothing}
    <p class="small quiet">Adding runs nothing. ${one.remote ? "It runs elsewhere, where no sandbox of yours holds it." : "Each of its tools is asked about until you have looked at them."}</p>
    <div class="both start">
      ${actButton({
        key: "write-server",
        ready: "Add it",
        label: `Add it: ${one.name}`,
        going: "Adding\u2026",
        done: "Added",
        failed: "Not added",
        again: true,
        kind: "main",
        act: async () => {
          const done = await backend.writeServer();
          what = name = "";
          planned = null;
          told = done;
          await added();
        },
      })}
      ${parts.button("drop-server", "Leave it", () => { planned = null; redraw(); }, { leaves: true })}
    </div>
  </div>`;
