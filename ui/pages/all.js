// All pages, in the order of the navigation.

import { activity } from "./activity.js";
import { agents } from "./agents.js";
import { home } from "./home.js";
import { permissions } from "./permissions.js";
import { rules } from "./rules.js";
import { servers } from "./servers.js";
import { settings } from "./settings.js";
import { welcome } from "./welcome.js";

/** @type {import("../app.js").Page[]} */
export const PAGES = [home, activity, agents, permissions, servers, rules, settings, welcome];
