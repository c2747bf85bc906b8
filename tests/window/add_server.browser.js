// Adding a server or a bundle, and storing the secrets that servers need.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Browser } from "./browser.js";
import { key, steps } from "./steps.js";

/** @type {Browser} */
let browser;
before(async () => (browser = await Browser.open()));
after(() => browser.close());
const { called, press, says, type, looksAccessibleExpanded } = steps(() => browser);

/** Selects the fake bundle. */
async function openBundle() {
  await press("choose-bundle");
  await says("Where notes are");
}

/** Fills in the required settings of the fake bundle. */
async function fillBundle() {
  await press("bundle-pick:folder");
  await says("~/Documents/notes");
  await type("bundle:key", "s3cret");
}

for (const theme of ["light", "dark"]) {
  test(`axe finds nothing in bundle settings and preview, ${theme}`, async () => {
    await browser.go("servers/add", { theme });
    await openBundle();
    await looksAccessibleExpanded();
    await fillBundle();
    await press("plan-bundle");
    await says("Network: none");
    await looksAccessibleExpanded();
  });
}

test("server is added as previewed, and an entered secret is never shown again", async () => {
  await browser.go("servers/add");
  await browser.run(`const what = document.querySelector('${key("add-what")}'); what.value = "npm:far"; what.dispatchEvent(new Event("input")); return true`);
  await press("plan-server");
  await says("<b>not markup</b>");
  assert.deepEqual(await called("write_server"), []);
  await press("write-server");
  await says("It has not been started.");
  assert.deepEqual(await called("plan_server"), [{ wanted: { what: "npm:far", name: "" } }]);
  await press("tab:servers/secrets");
  await says("Missing: photos-token. A server needs it.");
  await browser.run(`for (const [field, text] of [["secret-name", "photos-token"], ["secret-value", "s3cret"]]) { const input = document.querySelector('[data-key="' + field + '"]'); input.value = text; input.dispatchEvent(new Event("input")); } return true`);
  assert.equal(await browser.run(`document.querySelector('${key("secret-value")}').type`), "password");
  await press("set-secret");
  await says("used by photos");
  assert.equal(await browser.run(`document.querySelector('${key("secret-value")}').value`), "");
  assert.deepEqual(await called("set_secret"), [{ name: "photos-token", value: "s3cret" }]);
  await press("remove-secret:brave-key");
  await press("remove-secret:brave-key:yes");
  await browser.until(`made.calls.some(([name]) => name === "remove_secret")`);
});

test("bundle is added as previewed with the picked folder, and its key is stored only then", async () => {
  await browser.go("servers/add");
  await openBundle();
  await says("It claims to be by Notes & Sons: \u201cKeeps notes in a folder.");
  await says("Its maker suggests ${HOME}/Notes; pick it to use it.");
  assert.equal(await browser.run(`document.querySelector('${key("plan-bundle")}').disabled`), true, "the folder and the key are missing");
  await fillBundle();
  assert.equal(await browser.run(`document.querySelector('${key("bundle:key")}').type`), "password");
  await press("bundle-pick:list");
  await type("bundle:level", "7");
  await press("plan-bundle");
  await says("Not possible: 7 is not a number from 1 to 3, as level has to be");
  await type("bundle:level", "3");
  await press("bundle:sync");
  await press("plan-bundle");
  await says("Works with, after you allow it for an agent: /home/ada/Documents/notes");
  await says("Starts node /bundle/server.js <b>not markup</b>");
  await press("drop-server");
  // The entered values are kept.
  await browser.until(`document.querySelector('${key("bundle:level")}')?.value === "3"`);
  await type("bundle-name", "mine");
  await press("plan-bundle");
  await says("Your key is stored as mine-key");
  assert.equal(await browser.run(`document.querySelector("#page").innerText.includes("in place of")`), false);
  assert.deepEqual([await called("write_server"), await called("set_secret")], [[], []]);
  await press("write-server");
  await says("It has not been started.");
  await press("tab:servers/installed");
  await browser.until(`document.querySelector('${key("server:mine")}') !== null`);
  await press("tab:servers/add");
  assert.deepEqual(await called("set_secret"), [{ name: "mine-key", value: "s3cret" }]);
  const values = { level: ["3"], sync: ["false"] };
  assert.deepEqual((await called("plan_bundle")).at(-1), { wanted: { name: "mine", values, without: [] } }, "the page names no path");
  assert.deepEqual(await called("pick_for_bundle"), [{ setting: "folder" }, { setting: "list" }]);
  await press("choose-bundle");
  await says("Where notes are");
  assert.equal(await browser.run(`document.querySelector('${key("bundle:key")}').value`), "", "the entered key is cleared");
  await fillBundle();
  await type("bundle-name", "mine");
  await press("plan-bundle");
  await says("stored as mine-key, replacing the one with this name");
});

test("invalid bundle is refused with a reason, cancelling discards it, and a key that fails to store adds nothing", async () => {
  await browser.go("servers/add");
  await browser.run(`made.fail.choose_bundle = "\`../../evil\` in the bundle would lie outside of it, or is a link; nothing was added"; return true`);
  await press("choose-bundle");
  await says("Not possible: ../../evil in the bundle would lie outside of it");
  assert.equal(await browser.run(`document.querySelector('${key("plan-bundle")}')`), null);
  await browser.run(`delete made.fail.choose_bundle; made.fail.set_secret = "no keyring answers"; return true`);
  await press("choose-bundle");
  await says("Where notes are");
  await fillBundle();
  await press("plan-bundle");
  await press("write-server");
  await says("Not added: no keyring answers");
  assert.deepEqual(await called("write_server"), []);
  await press("drop-server");
  await press("leave-bundle");
  await browser.until(`document.querySelector('${key("add-what")}') !== null`);
  assert.equal((await called("discard_bundle")).length, 1);
});

test("without a keyring a secrets file is created with a passphrase entered twice, and unlocked with it", async () => {
  const type = (field, text) => browser.run(`const input = document.querySelector('[data-key="${field}"]'); input.value = ${JSON.stringify(text)}; input.dispatchEvent(new Event("input")); return true`);
  const off = (which) => browser.run(`return document.querySelector('${key(which)}').disabled`);
  const turn = async (to) => { await browser.run(`location.hash = "${to}"; return true`); await browser.until(`document.querySelector("#page-${to.split("/")[0]} h1") !== null`); };
  await browser.go("home");
  await browser.run(`made.secrets = { ...made.secrets, place: "nowhere", names: [] }; return true`);
  await turn("servers/secrets");
  await says("There is no keyring here");
  assert.equal(await browser.run(`return document.querySelector('${key("set-secret")}')`), null, "no secret can be stored before there is a place for it");
  await type("secrets-passphrase", "four words and more");
  assert.equal(await off("make-secrets-file"), true, "typed once");
  await type("secrets-passphrase-again", "four words and less");
  await says("The two passphrases differ.");
  assert.equal(await off("make-secrets-file"), true, "typed twice, and not the same");
  await type("secrets-passphrase-again", "four words and more");
  await press("make-secrets-file");
  await says("an encrypted file, unlocked until IronCurtain quits");
  assert.deepEqual(await called("make_secrets_file"), [{ passphrase: "four words and more" }]);
  await turn("home");
  await browser.run(`made.secrets.place = "locked"; return true`);
  await turn("servers/secrets");
  await says("do not start until you unlock them");
  await type("secrets-passphrase", "wrong words");
  await press("unlock-secrets");
  await says("the passphrase is wrong");
  assert.equal(await browser.run(`return document.querySelector('${key("secrets-passphrase")}').value`), "");
  await type("secrets-passphrase", "four words and more");
  await press("unlock-secrets");
  await says("Store the secret");
});
