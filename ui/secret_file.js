// The passphrase of the encrypted secrets file, which replaces a missing keyring. The passphrase is sent only to the app.

import { actButton } from "./action_button.js";
import * as backend from "./backend.js";
import { html, live, nothing } from "./html.js";
import * as parts from "./parts.js";
import { redraw } from "./state.js";
import { list } from "./words.js";

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
    <div class="panel" role="group" aria-label="Passphrase of your secrets">
      ${isNew
        ? html`<h3>There is no keyring here</h3>
            <p class="small">Your desktop has no password store, such as GNOME Keyring or KWallet. Start one, or keep secrets in a file encrypted with a passphrase, which you type here after each start of IronCurtain. If you forget it, nobody can recover it.</p>`
        : html`<h3>Your secrets are locked</h3>
            ${needed.length > 0 ? parts.warning(`Servers that need ${list(needed)} do not start until you unlock them.`) : nothing}`}
      <div class="form">
        ${field("secrets-passphrase", isNew ? "New passphrase" : "Passphrase", typed, (text) => { typed = text; }, isNew ? "At least four words." : nothing)}
        ${isNew ? field("secrets-passphrase-again", "The same again", again, (text) => { again = text; }) : nothing}
      </div>
      <div class="both start">
        ${actButton({
          key: isNew ? "make-secrets-file" : "unlock-secrets",
          ready: isNew ? "Make the encrypted file" : "Unlock",
          going: isNew ? "Making\u2026" : "Unlocking\u2026",
          done: isNew ? "Made" : "Unlocked",
          failed: isNew ? "Not made" : "Not unlocked",
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
      ${isNew && again !== "" && typed !== again ? parts.warning("The two passphrases differ.") : nothing}
      <p class="small quiet">${isNew ? "It would be" : "It is"} ${parts.path(found.file)}.</p>
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
