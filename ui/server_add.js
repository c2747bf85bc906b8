// Adds a server from a package, an address, a printed configuration or a bundle. The full plan is shown before it is written.

import { actButton, planPanel } from "./action_button.js";
import * as backend from "./backend.js";
import { html, live, nothing } from "./html.js";
import * as parts from "./parts.js";
import { planning } from "./plan_slots.js";
import { isKept } from "./secret_list.js";
import { bundleForm, bundleIsOpen, chooseButton, forgetBundle, keepSecrets } from "./server_bundle.js";
import { focusOn, redraw } from "./state.js";
import { SERVERS } from "./texts/servers.js";

let what = "";
let name = "";
/** @type {import("./types.js").PlannedServer | null} */
let planned = null;
let done = "";
/** Number of changes to the form. A plan applies only to the form that was planned. */
let changes = 0;

/** @param {() => Promise<void>} added Called after a server is added. */
export const addForm = (added) => html`
  <section class="card" aria-label=${SERVERS.otherTitle}>
    <h2>${SERVERS.otherTitle}</h2>
    ${bundleIsOpen() ? nothing : namedForm()}
    ${planned ? plan(planned, added) : bundleForm((shown) => { planned = shown; })}
    ${done ? html`<p class="small good" role="status">${parts.foreign(done)}</p>` : nothing}
  </section>`;

const namedForm = () => html`
  ${parts.field(SERVERS.what, html`<textarea class="mono" rows="3" spellcheck="false" data-key="add-what" placeholder=${SERVERS.whatPlaceholder} .value=${live(what)} @input=${(/** @type {Event} */ event) => set({ what: parts.valueOf(event) })}></textarea>`, SERVERS.whatHint)}
  <div class="form">${parts.field(SERVERS.name, html`<input type="text" data-key="add-name" .value=${live(name)} @input=${(/** @type {Event} */ event) => set({ name: parts.valueOf(event) })}>`, SERVERS.nameHint)}</div>
  <div class="both start">
    ${actButton({ key: "plan-server", ...SERVERS.plan, again: true, kind: "main", off: what.trim() === "", act: planNamed })}
    ${chooseButton(() => set({ what: "", name: "" }))}
  </div>`;

async function planNamed() {
  done = "";
  const asked = changes;
  const plan = await planning("addition", () => backend.planServer({ what, name }));
  if (asked === changes) planned = plan;
}

/** @param {{ what?: string, name?: string }} change */
function set(change) {
  what = change.what ?? what;
  name = change.name ?? name;
  changes += 1;
  planned = null;
  done = "";
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
        ${one.reaches.map((words) => html`<li>${parts.foreign(words)}</li>`)}
        ${Object.values(one.secrets).map((secret) => html`<li>${SERVERS.keyKeptAs} <code>${parts.foreign(secret)}</code>${isKept(secret) ? SERVERS.inPlace : nothing}</li>`)}
      </ul>
      <pre tabindex="0" aria-label=${SERVERS.entry}>${one.entry}</pre>
      ${one.plain_values ? parts.warning(SERVERS.plainValues) : nothing}
      ${one.kept ? parts.warning(SERVERS.keptAlready(one.kept)) : nothing}
      <p class="small quiet">${SERVERS.notStarted} ${one.remote ? SERVERS.addedRemote : SERVERS.addedAsks}</p>`,
    {
      key: "write-server",
      writes: "addition",
      ...SERVERS.addIt,
      label: SERVERS.addItLabel(one.name),
      act: async () => {
        await keepSecrets(one);
        const words = await backend.writeServer();
        forgetBundle();
        set({ what: "", name: "" });
        done = words;
        await added();
      },
    },
    bundleIsOpen()
      ? { key: "drop-server", text: SERVERS.changeEntered, press: () => { planned = null; focusOn("bundle-name"); } }
      : { key: "drop-server", text: SERVERS.cancel, press: () => set({}) },
  );
