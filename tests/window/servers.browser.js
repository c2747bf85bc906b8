// Installed servers and profiles: what each server may reach, its limits, login, processes and removal.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Browser } from "./browser.js";
import { key, steps } from "./steps.js";

/** @type {Browser} */
let browser;
before(async () => (browser = await Browser.open()));
after(() => browser.close());
const { called, press, says, made } = steps(() => browser);

test("server processes show their state, and a restart asks for confirmation", async () => {
  await browser.go("servers");
  await press("server:photos");
  await says("restarted 2 times");
  await press("log:s2");
  await says("ModuleNotFoundError: <b>no module photos</b>");
  await press("server-restart:s2");
  await says("The process of photos is restarted.");
  await press("server-restart:s2:yes");
  await browser.until(`made.calls.some(([name]) => name === "restart_server")`);
});

test("host is allowed permanently after a summary, invalid names are refused, and it can be removed", async () => {
  await browser.go("servers/installed/fetch");
  await press("server:photos");
  const type = (text) => browser.run(`const host = document.querySelector('${key("open-host:fetch")}'); host.value = "${text}"; host.dispatchEvent(new Event("input")); return true`);
  await type("https://a.example/x");
  await press("open-host:fetch:plan");
  await says("https://a.example/x is not a host");
  await type("a.example");
  await press("open-host:fetch:plan");
  await says("fetch may send anything it knows to a.example, at any time");
  assert.deepEqual(await called("write_opening"), []);
  await press("open-now:fetch");
  await says("It is open to new sessions.");
  await press("close:fetch:write:/home/ada/.cache/fetch");
  await says("fetch no longer always has access to /home/ada/.cache/fetch.");
  assert.deepEqual(await called("close_opening"), []);
  await press("close:fetch:write:/home/ada/.cache/fetch:yes");
  await says("/home/ada/.cache/fetch is closed.");
  assert.deepEqual(await called("close_opening"), [{ server: "fetch", opening: { kind: "write", what: "/home/ada/.cache/fetch" } }]);
  // An unsandboxed server has no list, because it reaches everything.
  assert.equal(await browser.run(`document.querySelector('${key("open-host:photos")}')`), null);
  assert.notEqual(await browser.run(`document.querySelector('${key("open-host:fetch")}')`), null);
});

test("server limits change after a summary, and invalid numbers are not treated as defaults", async () => {
  await browser.go("servers/installed/fetch");
  await press("server:photos");
  const shown = () => browser.run(`[...document.querySelectorAll("[data-key^='limit:fetch:']")].slice(0, 3).map((one) => [one.value, one.placeholder])`);
  await browser.until(`document.querySelector('${key("limit:fetch:memory")}') !== null`);
  assert.deepEqual(await shown(), [["", "4,096"], ["", "no limit"], ["64", "1,024"]]);
  const type = (limit, text) => browser.run(`const field = document.querySelector('[data-key="limit:fetch:${limit}"]'); field.value = "${text}"; field.dispatchEvent(new Event("input")); return true`);
  const off = () => browser.run(`document.querySelector('${key("limits-plan:fetch")}').disabled`);
  assert.equal(await off(), true, "nothing would change");
  await type("memory", "much");
  await says("Enter a whole number.");
  assert.equal(await off(), true);
  await type("memory", "8");
  await press("limits-plan:fetch");
  await says("Not possible: memory cannot be 8: write 32 to 1048576 MiB");
  await type("memory", "2,048");
  await type("processes", "");
  await press("limits-plan:fetch");
  await says("Processes and threads: 1024 in place of 64. Looser: it can start more at once.");
  await says('"memoryMib": 2048');
  const plans = (await called("plan_limits")).map(({ wanted }) => [wanted.memory, wanted.processes, wanted.processor]);
  assert.deepEqual(plans, [[8, 64, null], [2048, null, null]]);
  assert.deepEqual(await called("write_limits"), []);
  await press("limits-write:fetch");
  await says("Changes apply to new sessions.");
  await browser.until(`document.querySelector('${key("limit:fetch:memory")}')?.value === "2048"`);
  assert.deepEqual(await shown(), [["2048", "4,096"], ["", "no limit"], ["", "1,024"]]);
  // An unsandboxed server has no limits.
  assert.equal(await browser.run(`document.querySelector('${key("limits-plan:photos")}')`), null);
});

test("login shows who gets a token before the browser opens, and can be ended", async () => {
  await browser.go("settings");
  await made(`for (const name of ["far", "hub"]) made.servers.servers.push({ ...made.servers.servers[0], name, remote: true, sandboxed: false, can_log_in: true, login: null, login_required: name === "hub", limits: [], live: [] })`);
  await browser.run(`location.hash = "servers"; return true`);
  await browser.until(`document.querySelector("#page-servers h1") !== null`);
  await browser.settled();
  await press("server:far");
  await press("login:far");
  for (const words of ["Authorization server: https://auth.example.com/<b>not markup</b>", "Scopes: read, write", "Open auth.example.com in your browser"]) await says(words);
  await press("login-leave:far");
  await browser.until(`document.querySelector('${key("login-open:far")}') === null`);
  assert.deepEqual(await called("log_in"), []);
  // A login that waits for the browser can be cancelled.
  await made("made.waitsForBrowser = true");
  await press("login:far");
  await press("login-open:far");
  await says("Waiting for your browser\u2026");
  await press("login-leave:far");
  await browser.until(`document.querySelector('${key("login-open:far")}') === null`);
  await browser.until(`document.activeElement?.dataset.key === "login:far"`);
  assert.deepEqual(await called("cancel_login"), [{ number: 2 }]);
  assert.equal(await browser.run(`return document.body.textContent.includes("Not logged in")`), false);
  await made("made.waitsForBrowser = false");
  await press("login:far");
  await press("login-open:far");
  await says("You are logged in to far.");
  assert.deepEqual(await called("log_in"), [{ number: 2 }, { number: 3 }], "the login that was shown");
  await says("Logged in at https://auth.example.com (read, write)");
  // The list is read when the page is opened. The row stays open.
  await made(`made.servers.servers.find((one) => one.name === "far").login.has_ended = true`);
  for (const page of ["settings", "servers"]) {
    await browser.run(`location.hash = "${page}"; return true`);
    await browser.until(`document.querySelector("#page-${page} h1") !== null`);
  }
  await says("Your login at https://auth.example.com has expired");
  await press("logout:far");
  await says("Agents can no longer use your account through far.");
  assert.deepEqual(await called("log_out"), []);
  await press("logout:far:yes");
  await says("You are logged out of far.");
  // For an authorization server without dynamic registration, the user enters a client id.
  await press("server:hub");
  await says("Login required");
  await press("login:hub");
  await says("does not let programs register themselves");
  await browser.run(`const field = document.querySelector('${key("login-client:hub")}'); field.value = "mine"; field.dispatchEvent(new Event("input")); return true`);
  await browser.run(`const field = document.querySelector('${key("login-redirect:hub")}'); field.value = "http://localhost:3118/callback"; field.dispatchEvent(new Event("input")); return true`);
  await press("login:hub");
  await says("to log in for hub?");
  assert.deepEqual((await called("plan_login")).map(({ server, client_id, redirect }) => [server, client_id, redirect]), [["far", null, null], ["far", null, null], ["far", null, null], ["hub", null, null], ["hub", "mine", "http://localhost:3118/callback"]]);
  await press("server:filesystem");
  await says("the session's own folder");
  assert.equal(await browser.run(`document.querySelector('${key("login:filesystem")}')`), null, "a local server has no login");
});

test("removing a server lists its effects, removes its permissions, and can be undone", async () => {
  await browser.go("servers");
  await press("more:photos");
  await press("remove:photos");
  await says("Its entry is removed.");
  await says("Still set to start it: Cursor (its entry photos).");
  await says("Still named by the profile work.");
  await says("Revoke its 1 permission too");
  assert.deepEqual(await called("remove_server"), []);
  await press("remove-now:photos");
  await says("photos was removed. Its session was closed.");
  await says("1 permission could not be revoked");
  assert.deepEqual(await called("revoke_grants"), [{ grants: ["g4"] }]);
  await press("restore:photos");
  await says("photos was restored.");
  await press("removed-more:trello");
  await press("forget:trello");
  await says("The entry of trello is deleted permanently");
  assert.deepEqual(await called("forget_server"), []);
});

test("profile is created, changed, removed and assigned to a client after a preview", async () => {
  await browser.go("servers/profiles");
  await says("used by Claude Code");
  await says("No longer exists: old.");
  await press("profile-new");
  await browser.until(`document.querySelector('${key("profile-name")}') !== null`);
  await browser.run(`const name = document.querySelector('${key("profile-name")}'); name.value = "play"; name.dispatchEvent(new Event("input")); return true`);
  await press("profile-server:fetch");
  await press("profile-save");
  await says("no client uses it yet");
  assert.deepEqual(await called("change_profile"), [{ name: "play", servers: ["fetch"] }]);
  await press("profile-more:work");
  await press("profile-remove:work");
  await says("Claude Code cannot start its servers");
  await press("profile-remove:work:yes");
  await browser.until(`document.querySelector('${key("profile-change:work")}') === null`);
  await browser.run(`location.hash = "#agents"; return true`);
  await press("client:cursor");
  await press("profile:cursor:play");
  await says('"profile play": "<b>not markup</b>"');
});
