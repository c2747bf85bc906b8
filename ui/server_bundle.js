// Adds a server from a bundle (.mcpb): the picker, the description and the settings.
//
// - Files and folders must be picked. The bundle's suggestions for them are shown, but never applied.
// - A typed secret is stored when the server is added, and discarded when the bundle is closed.

import { actButton } from "./action_button.js";
import * as backend from "./backend.js";
import { html, live, nothing, repeat } from "./html.js";
import * as parts from "./parts.js";
import { planning } from "./plan_slots.js";
import { focusOn, redraw } from "./state.js";
import { SERVERS } from "./texts/servers.js";

/** @typedef {import("./types.js").BundleSetting} BundleSetting */

/** @type {import("./types.js").OpenedBundle | null} */
let bundle = null;
let name = "";
/** Typed values, by setting. @type {Map<string, string>} */
const typed = new Map();
/** Picked paths, by setting. @type {Map<string, string[]>} */
const picked = new Map();

export const bundleIsOpen = () => bundle !== null;

/** @param {() => void} chosen Called after a bundle is chosen. */
export const chooseButton = (chosen) =>
  actButton({
    key: "choose-bundle",
    ...SERVERS.choose,
    again: true,
    act: async () => {
      const found = await backend.chooseBundle();
      if (!found) return;
      forgetBundle();
      bundle = found;
      chosen();
      focusOn("bundle-name");
    },
  });

/** Drops the bundle and all values typed for it. */
export function forgetBundle() {
  bundle = null;
  name = "";
  typed.clear();
  picked.clear();
}

/**
 * Stores the secrets typed for a server.
 * @param {import("./types.js").PlannedServer} planned
 */
export async function keepSecrets({ secrets }) {
  for (const [setting, secret] of Object.entries(secrets)) await backend.setSecret(secret, typed.get(setting) ?? "");
}

/** @param {(planned: import("./types.js").PlannedServer) => void} shown Called with the plan. */
export function bundleForm(shown) {
  if (bundle === null) return nothing;
  const { title, maker, about, file, settings } = bundle;
  const leave = async () => {
    forgetBundle();
    focusOn("choose-bundle");
    await backend.discardBundle();
  };
  return html`
    <div class="panel" role="group" aria-label=${SERVERS.bundle(title)}>
      <h3>${parts.foreign(title)}</h3>
      <div class="facts">${parts.path(file)}</div>
      <p class="small quiet">${SERVERS.claims}${maker ? html` ${SERVERS.by} ${parts.foreign(maker)}` : nothing}: ${about ? html`\u201c${parts.foreign(about)}\u201d` : SERVERS.noDescription}</p>
      <div class="form">
        ${parts.field(SERVERS.name, html`<input type="text" autocomplete="off" spellcheck="false" placeholder=${bundle.name} data-key="bundle-name" .value=${live(name)} @input=${(/** @type {Event} */ event) => { name = parts.valueOf(event); redraw(); }}>`, SERVERS.nameHint)}
        ${repeat(settings, (one) => one.key, setting)}
      </div>
      <div class="both start">
        ${actButton({
          key: "plan-bundle",
          ...SERVERS.plan,
          again: true,
          kind: "main",
          off: !settings.every(isFilled),
          act: async () => shown(await planning("addition", () => backend.planBundle({ name, values: valuesOf(settings), without: withoutSecrets(settings) }))),
        })}
        ${parts.button("leave-bundle", SERVERS.cancel, () => void leave(), { leaves: true })}
      </div>
    </div>`;
}

/**
 * Returns the text of a field.
 * @param {BundleSetting} one
 */
const textOf = (one) => typed.get(one.key) ?? (one.kind === "secret" ? "" : one.proposed.join(", "));

/** @param {BundleSetting} one */
const isPath = (one) => one.kind === "folder" || one.kind === "file";

/** @param {BundleSetting} one */
const isFilled = (one) => !one.required || one.kind === "toggle" || (isPath(one) ? picked.has(one.key) : textOf(one) !== "");

/**
 * Returns the values that differ from the suggestions. An unticked box counts as false.
 * @param {BundleSetting[]} settings
 * @returns {Record<string, string[]>}
 */
const valuesOf = (settings) =>
  Object.fromEntries(settings.flatMap((one) => {
    if (one.kind === "toggle") return [[one.key, [String(textOf(one) === "true")]]];
    const text = typed.get(one.key);
    return isPath(one) || one.kind === "secret" || text === undefined ? [] : [[one.key, text === "" ? [] : [text]]];
  }));

/** @param {BundleSetting[]} settings */
const withoutSecrets = (settings) => settings.filter((one) => one.kind === "secret" && textOf(one) === "").map(({ key }) => key);

/** @param {BundleSetting} one */
function setting(one) {
  if (isPath(one)) return pathField(one);
  const type = (/** @type {string} */ text) => {
    typed.set(one.key, text);
    redraw();
  };
  const hint = html`${parts.foreign(one.about)} ${one.kind === "secret" ? SERVERS.storedSecret : nothing}${one.required || one.kind === "toggle" ? nothing : SERVERS.optional}`;
  if (one.kind === "toggle") {
    return html`<div class="field">${parts.tick(`bundle:${one.key}`, parts.foreign(one.title), textOf(one) === "true", (on) => type(String(on)))}<p class="hint">${hint}</p></div>`;
  }
  return parts.field(
    one.title,
    html`<input type=${one.kind === "secret" ? "password" : "text"} inputmode=${one.kind === "number" ? "decimal" : nothing} autocomplete="off" spellcheck="false"
      data-key="bundle:${one.key}" .value=${live(textOf(one))} @input=${(/** @type {Event} */ event) => type(parts.valueOf(event))}>`,
    hint,
  );
}

/** @param {BundleSetting} one */
function pathField(one) {
  const ready = one.kind === "folder" ? (one.several ? SERVERS.pickFolders : SERVERS.pickFolder) : one.several ? SERVERS.pickFiles : SERVERS.pickFile;
  return html`
    <div class="field wide"><span class="name">${parts.foreign(one.title)}</span>
      ${(picked.get(one.key) ?? []).map((path) => html`<div>${parts.path(path)}</div>`)}
      <div>${actButton({
        key: `bundle-pick:${one.key}`,
        ready,
        label: `${ready} ${one.title}`,
        ...SERVERS.pick,
        again: true,
        act: async () => {
          const paths = await backend.pickForBundle(one.key);
          if (paths) picked.set(one.key, paths);
        },
      })}</div>
      <p class="hint">${parts.foreign(one.about)} ${one.proposed.length > 0 ? html`${SERVERS.suggests} ${parts.foreign(one.proposed.join(", "))}${SERVERS.suggestsEnd}` : nothing}${one.required ? nothing : SERVERS.leftOut}${SERVERS.staysClosed}</p>
    </div>`;
}
