// Adds a new server by package, address, printed configuration or bundle. The whole plan is shown before
// it is written.

import { actButton, planPanel } from "./action_button.js";
import * as backend from "./backend.js";
import { html, live, nothing } from "./html.js";
import * as parts from "./parts.js";
import { isKept } from "./secret_list.js";
import { bundleForm, bundleIsOpen, chooseButton, forgetBundle, keepSecrets } from "./server_bundle.js";
import { focusOn, redraw } from "./state.js";

let what = "";
let name = "";
/** @type {import("./types.js").PlannedServer | null} */
let planned = null;
let told = "";

/** @param {() => Promise<void>} added Called after a server is added. */
export const addForm = (added) => html`
  <details class="card">
    <summary data-key="add-other">Add another one, or a bundle (.mcpb)</summary>
    ${bundleIsOpen() ? nothing : namedForm()}
    ${planned ? plan(planned, added) : bundleForm((shown) => { planned = shown; })}
    ${told ? html`<p class="small good" role="status">${told}</p>` : nothing}
  </details>`;

const namedForm = () => html`
  ${parts.field("What", html`<textarea class="mono" rows="4" spellcheck="false" data-key="add-what" placeholder="npm:NAME, pypi:NAME, https://… or its configuration" .value=${live(what)} @input=${(/** @type {Event} */ event) => set({ what: parts.valueOf(event) })}></textarea>`, "A package, an address, or the { \u2026 } from its documentation.")}
  <div class="form">${parts.field("Name", html`<input type="text" data-key="add-name" .value=${live(name)} @input=${(/** @type {Event} */ event) => set({ name: parts.valueOf(event) })}>`, "Leave empty for the default.")}</div>
  <div class="both start">
    ${actButton({ key: "plan-server", ready: "Show what would be added", going: "Looking\u2026", done: "Looked", failed: "Not possible", again: true, kind: "main", off: what.trim() === "", act: async () => { told = ""; planned = await backend.planServer({ what, name }); } })}
    ${chooseButton(() => set({ what: "", name: "" }))}
  </div>`;

/** @param {{ what?: string, name?: string }} change */
function set(change) {
  what = change.what ?? what;
  name = change.name ?? name;
  planned = null;
  told = "";
  redraw();
}

/**
 * @param {import("./types.js").PlannedServer} one
 * @param {() => Promise<void>} added
 */
const plan = (one, added) =>
  planPanel(
    "What would be added",
    html`
      <h3>${parts.foreign(one.name)}</h3>
      <p class="small">${one.remote ? "Connects to" : "Starts"} <code>${parts.foreign(one.command)}</code></p>
      <ul class="small">
        ${one.reaches.map((words) => html`<li>${words}</li>`)}
        ${Object.values(one.secrets).map((secret) => html`<li>The key that you typed is kept as <code>${secret}</code>${isKept(secret) ? ", in place of the one that has this name" : nothing}</li>`)}
      </ul>
      <pre tabindex="0" aria-label="Its entry">${one.entry}</pre>
      ${one.plain_values ? parts.warning("A value is stored unprotected. If it is a key, keep it as a secret below, and write keyring:NAME in its place.") : nothing}
      ${one.kept ? parts.warning(`Kept under this name already: ${one.kept}. Another program does not get it until you decide.`) : nothing}
      <p class="small quiet">Adding does not start it. ${one.remote ? "It is remote, so it cannot be sandboxed." : "You are asked about each of its tools until you have reviewed them."}</p>`,
    {
      key: "write-server",
      ready: "Add it",
      label: `Add it: ${one.name}`,
      going: "Adding\u2026",
      done: "Added",
      failed: "Not added",
      act: async () => {
        await keepSecrets(one);
        const done = await backend.writeServer();
        forgetBundle();
        set({ what: "", name: "" });
        told = done;
        await added();
      },
    },
    bundleIsOpen()
      ? { key: "drop-server", text: "Change what you entered", press: () => { planned = null; focusOn("bundle-name"); } }
      : { key: "drop-server", text: "Cancel", press: () => set({}) },
  );
