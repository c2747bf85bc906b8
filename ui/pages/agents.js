// The agents: their sessions and protection, and connecting another one.

import { html } from "../html.js";
import { FRAME } from "../texts/frame.js";
import { clients } from "./clients.js";
import { sessions } from "./sessions.js";

/** @type {import("../app.js").Page} */
export const agents = {
  id: "agents",
  name: FRAME.pages.agents,
  icon: "bot",
  count: ({ sessions }) => new Set(sessions.map((one) => one.client.name)).size,
  load: async () => clients.load?.(),
  view: (snapshot, part) => html`${sessions.view(snapshot, part)}${clients.view(snapshot, part)}`,
};
