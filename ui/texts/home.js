// Texts of the home page.

import { count } from "../words.js";

export const HOME = {
  except: (/** @type {number} */ n) => `Protected, except ${count(n, "server")}`,
  changedText: "Decide what happens to its permissions. Everything else is protected as before.",
  wrongText: "Calls that cannot be checked or recorded are denied until this is fixed.",
  lockedText: "Everything that would ask you is denied. Your permissions and rules still apply.",
  noAgentText: "An agent appears here when it starts a server through IronCurtain.",
  notProtectedText: "Connect an agent to protect what it starts.",
};
