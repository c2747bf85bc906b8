// The user's organization on the settings page: the settings that it manages, and what it receives.

import { html, nothing } from "./html.js";
import { openable } from "./opened.js";
import * as parts from "./parts.js";
import { ORGANIZATION } from "./texts/organization.js";

const TEXTS = ORGANIZATION.settings;

/** Returns the section. @param {import("./types.js").ManagedView} managed */
export function organization(managed) {
  const { organization: name, revision, without, problem } = managed;
  const all = managedSettings(managed.settings);
  const what = html`
    ${parts.title(parts.foreign(name))}
    ${without === null ? nothing : html`<p class="small ${without === "deny" ? "bad" : "asks"}">${parts.coded(ORGANIZATION.without(without, problem))}</p>`}
    ${parts.facts(
      revision === null ? nothing : parts.foreign(ORGANIZATION.rulesOf(revision)),
      all.length === 0 ? nothing : ORGANIZATION.settingsOf(all.length),
      revision === null && without === null && all.length === 0 ? ORGANIZATION.nothing : nothing,
      ORGANIZATION.record[managed.record],
    )}`;
  const row = { what, before: parts.icon("lock") };
  return html`
    ${parts.section(ORGANIZATION.section)}
    ${parts.group(all.length === 0 ? parts.row(row.what, nothing, row.before) : openable("organization", ORGANIZATION.open(name), row, () => html`
      <ul class="locks">${all.map((one) => html`<li>${parts.icon("lock")}<span>${parts.coded(one)}</span></li>`)}</ul>`))}`;
}

/** Returns a sentence for each setting. @param {import("./types.js").ManagedSettings} all */
function managedSettings(all) {
  const sandbox = all.enforce_sandbox ? TEXTS.enforceSandbox : null;
  const sentences = [
    all.forbid_unsandboxed ? TEXTS.forbidUnsandboxed : sandbox,
    all.network && TEXTS.network[all.network],
    all.allowed_servers && TEXTS.allowed(all.allowed_servers),
    all.denied_servers.length > 0 ? TEXTS.denied(all.denied_servers) : null,
    all.max_grant_minutes && TEXTS.maxGrant(all.max_grant_minutes),
    all.require_export || all.export_url !== null ? TEXTS.export(all.export_url) : null,
    all.export_paths && TEXTS.paths[all.export_paths],
  ];
  return sentences.filter((one) => typeof one === "string");
}

/** Returns the reason why a control is disabled. @param {string} name Name of the organization. */
export const lockedBy = (name) => parts.chip(ORGANIZATION.setBy(name), "note", "lock");
