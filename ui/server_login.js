// Logs in to a remote server, after showing what the login allows.

import { CANCELLED, actButton, planPanel } from "./action_button.js";
import * as backend from "./backend.js";
import { addFailure } from "./failures.js";
import { html, live, nothing } from "./html.js";
import * as parts from "./parts.js";
import { planning } from "./plan_slots.js";
import { focusOn, redraw } from "./state.js";
import { SERVERS } from "./texts/servers.js";

/** @typedef {import("./types.js").Server} Server */

/** The planned login. @type {{ server: string, planned: import("./types.js").PlannedLogin } | null} */
let planned = null;
/** Numbers of the logins that wait for the browser. @type {Set<number>} */
const waiting = new Set();
/** Number of plans requested. */
let requested = 0;
/** Client data that the user typed, by server. @type {Map<string, { id: string, secret: string, redirect: string }>} */
const clients = new Map();

/**
 * Returns the login section in a server's details.
 * @param {Server} server
 * @param {(words: string) => Promise<void>} done
 */
export function loginPanel(server, done) {
  if (!server.can_log_in) return nothing;
  if (planned?.server === server.name) return panel(server, planned.planned, done);
  return html`
    ${server.login ? html`<p>${loginText(server.login)}</p>` : nothing}
    ${server.login_required ? html`<p>${SERVERS.loginRequired}</p>` : nothing}
    ${clientFields(server)}
    <div class="both start">
      ${loginButton(server)}
      ${server.login ? actButton({
        key: `logout:${server.name}`,
        ...SERVERS.logout,
        label: SERVERS.logoutLabel(server.name),
        says: SERVERS.logoutSays(server.name),
        again: true,
        act: async () => done(await backend.logOut(server.name)),
      }) : nothing}
    </div>`;
}

/** @param {{ issuer: string, scopes: string[], has_ended: boolean }} login */
const loginText = (login) =>
  login.has_ended ? SERVERS.loginEnded(login.issuer) : SERVERS.loggedIn(login.issuer, login.scopes);

/** @param {Server} server */
const loginButton = (server) =>
  actButton({
    key: `login:${server.name}`,
    ...SERVERS.login,
    ready: server.login ? SERVERS.loginAgain : SERVERS.login.ready,
    label: SERVERS.loginLabel(server.name),
    again: true,
    act: async () => {
      const client = clients.get(server.name);
      const request = ++requested;
      try {
        const plan = await planning("login", () => backend.planLogin(server.name, client ?? null));
        // A slow server must not replace the plan that the user is reading.
        if (request !== requested) return;
        planned = { server: server.name, planned: plan };
      } catch (problem) {
        // The authorization server may need a client that the user registered.
        if (!client) clients.set(server.name, { id: "", secret: "", redirect: "" });
        throw problem;
      }
      focusOn(`login-leave:${server.name}`);
    },
  });

/** @param {Server} server */
function clientFields(server) {
  const client = clients.get(server.name);
  if (!client) return nothing;
  const type = (/** @type {"id" | "secret" | "redirect"} */ what) => (/** @type {Event} */ event) => {
    // The drawn fields may be older than the typed values.
    clients.set(server.name, { ...(clients.get(server.name) ?? client), [what]: parts.valueOf(event) });
    redraw();
  };
  return html`
    <p class="small quiet">${SERVERS.clientText}</p>
    <div class="form">
      ${parts.field(SERVERS.clientId, html`<input type="text" autocomplete="off" data-key="login-client:${server.name}" .value=${live(client.id)} @input=${type("id")}>`)}
      ${parts.field(SERVERS.clientSecret, html`<input type="password" autocomplete="off" data-key="login-secret:${server.name}" .value=${live(client.secret)} @input=${type("secret")}>`)}
      ${parts.field(SERVERS.clientRedirect, html`<input type="text" autocomplete="off" placeholder=${SERVERS.clientRedirectExample} data-key="login-redirect:${server.name}" .value=${live(client.redirect)} @input=${type("redirect")}>`)}
    </div>`;
}

/**
 * @param {Server} server
 * @param {import("./types.js").PlannedLogin} login
 * @param {(words: string) => Promise<void>} done
 */
const panel = (server, login, done) =>
  planPanel(
    SERVERS.loginLabel(server.name),
    html`
      <ul class="small">${login.lines.map((one) => html`<li>${parts.coded(one)}</li>`)}</ul>
      <p>${parts.coded(login.question)}</p>`,
    {
      key: `login-open:${server.name}`,
      writes: "login",
      ...SERVERS.openBrowser,
      label: SERVERS.openBrowserLabel(server.name),
      act: async () => {
        waiting.add(login.number);
        try {
          const words = await backend.logIn(login.number);
          if (words === null) return CANCELLED;
          clients.delete(server.name);
          await done(words);
        } finally {
          waiting.delete(login.number);
          close(login);
        }
      },
    },
    {
      key: `login-leave:${server.name}`,
      text: SERVERS.cancel,
      press: () => {
        if (waiting.delete(login.number)) {
          backend.cancelLogin(login.number).catch((problem) => addFailure(backend.sentence(problem)));
        }
        close(login);
        focusOn(`login:${server.name}`);
      },
    },
  );

/** Closes the panel of a login, unless it shows another login by now. @param {import("./types.js").PlannedLogin} login */
function close(login) {
  if (planned?.planned.number === login.number) planned = null;
}
