// Adds a server from a package, an address, a printed configuration or a bundle. The full plan is shown before it is written.

import { actButton, planPanel } from "./action_button.js";
import * as backend from "./backend.js";
import { html, live, nothing } from "./html.js";
import * as parts from "./parts.js";
import { isKept } from "./secret_list.js";
import { bundleForm, bundleIsOpen, chooseButton, forgetBundle, keepSecrets } from "./server_bundle.js";
import { focusOn, redraw } from "./state.js";
import { SERVERS } from "./texts/servers.js";

let what = "";
let name = "";
/** @type {import("./types.js").PlannedServer | null} */
let planned = null;
let told = "";

/** @param {() => Promise<void>} added Called after a server is added. */
export const addForm = (added) => html`
  <section class="card" aria-label=${SERVERS.otherTitle}>
    <h2>${SERVERS.otherTitle}</h2>
    ${bundleIsOpen() ? nothing : namedForm()}
    ${planned ? plan(planned, added) : bundleForm((shown) => { planned = shown; })}
    ${told ? html`<p class="small good" role="status">${told}</p>` : nothing}
  </section>`;

const namedForm = () => html`
  ${parts.field(SERVERS.what, html`<textarea class="mono" rows="3" spellcheck="false" data-key="add-what" placeholder=${SERVERS.whatPlaceholder} .value=${live(what)} @input=${(/** @type {Event} */ event) => set({ what: parts.valueOf(event) })}></textarea>`, SERVERS.whatHint)}
  <div class="form">${parts.field(SERVERS.name, html`<input type="text" data-key="add-name" .value=${live(name)} @input=${(/** @type {Event} */ event) => set({ name: parts.valueOf(event) })}>`, SERVERS.nameHint)}</div>
  <div class="both start">
    ${actButton({ key: "plan-server", ...SERVERS.plan, again: true, kind: "main", off: what.trim() === "", act: async () => { told = ""; planned = await backend.planServer({ what, name }); } })}
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
    SERVERS.planned,
    html`
      <h3>${parts.foreign(one.name)}</h3>
      <p class="small">${one.remote ? SERVERS.connectsTo : SERVERS.starts} <code>${parts.foreign(one.command)}</code></p>
      <ul class="small">
        ${one.reaches.map((words) => html`<li>${words}</li>`)}
        ${Object.values(one.secrets).map((secret) => html`<li>${SERVERS.keyKeptAs} <code>${secret}</code>${isKept(secret) ? SERVERS.inPlace : nothing}</li>`)}
      </ul>
      <pre tabindex="0" aria-label=${SERVERS.entry}>${one.entry}</pre>
      ${one.plain_values ? parts.warning(SERVERS.plainValues) : nothing}
      ${one.kept ? parts.warning(SERVERS.keptAlready(one.kept)) : nothing}
      <p class="small quiet">${SERVERS.notStarted} ${one.remote ? SERVERS.addedRemote : SERVERS.addedAsks}</p>`,
    {
      key: "write-server",
      ...SERVERS.addIt,
      label: SERVERS.addItLabel(one.name),
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
      ? { key: "drop-server", text: SERVERS.changeEntered, press: () => { planned = null; focusOn("bundle-name"); } }
      : { key: "drop-server", text: SERVERS.cancel, press: () => set({}) },
  );
