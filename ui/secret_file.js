// The passphrase of the encrypted secrets file, which is used if there is no keyring. The passphrase is sent only to the app.

import { actButton } from "./action_button.js";
import * as backend from "./backend.js";
import { html, live, nothing } from "./html.js";
import * as parts from "./parts.js";
import { redraw } from "./state.js";
import { SERVERS } from "./texts/servers.js";

let typed = "";
let again = "";

/**
 * @param {import("./types.js").Secrets} found
 * @param {string[]} needed Secrets that servers use.
 * @param {() => Promise<void>} done
 */
export function passphraseForm(found, needed, done) {
  const isNew = found.place === "nowhere";
  return html`
    <div class="panel" role="group" aria-label=${SERVERS.passphraseOf}>
      ${isNew
        ? html`<h3>${SERVERS.noKeyring}</h3>
            <p class="small">${SERVERS.noKeyringText}</p>`
        : html`<h3>${SERVERS.locked}</h3>
            ${needed.length > 0 ? parts.warning(SERVERS.lockedText(needed)) : nothing}`}
      <div class="form">
        ${field("secrets-passphrase", isNew ? SERVERS.newPassphrase : SERVERS.passphrase, typed, (text) => { typed = text; }, isNew ? SERVERS.fourWords : nothing)}
        ${isNew ? field("secrets-passphrase-again", SERVERS.sameAgain, again, (text) => { again = text; }) : nothing}
      </div>
      <div class="both start">
        ${actButton({
          key: isNew ? "make-secrets-file" : "unlock-secrets",
          ...(isNew ? SERVERS.makeFile : SERVERS.unlock),
          again: true,
          kind: "main",
          off: typed === "" || (isNew && typed !== again),
          act: async () => {
            const passphrase = typed;
            typed = again = "";
            await (isNew ? backend.makeSecretsFile(passphrase) : backend.unlockSecrets(passphrase));
            await done();
          },
        })}
      </div>
      ${isNew && again !== "" && typed !== again ? parts.warning(SERVERS.differ) : nothing}
      <p class="small quiet">${isNew ? SERVERS.wouldBe : SERVERS.is} ${parts.path(found.file)}.</p>
    </div>`;
}

/**
 * @param {string} key
 * @param {string} name
 * @param {string} value
 * @param {(text: string) => void} set
 * @param {import("./parts.js").Content} [hint]
 */
const field = (key, name, value, set, hint = nothing) =>
  parts.field(name, html`<input type="password" autocomplete="off" data-key=${key} .value=${live(value)} @input=${(/** @type {Event} */ event) => { set(parts.valueOf(event)); redraw(); }}>`, hint);
