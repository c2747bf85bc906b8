// Texts of the servers page.

import { count, list } from "../words.js";

/**
 * Describes what removing a server deletes and keeps.
 * @param {import("../types.js").PlannedRemoval} plan
 * @param {number} sessions Number of its live sessions.
 * @returns {string[]}
 */
export function removalWords(plan, sessions) {
  const words = ["Its entry is removed. \u201cPut back\u201d restores it."];
  if (sessions > 0) words.push(`It stops now for ${count(sessions, "session")}; calls in flight fail.`);
  if (plan.clients.length > 0) words.push(`Still set to start it: ${list(plan.clients)}. They will get an error; disconnect it under Agents.`);
  if (plan.profiles.length > 0) words.push(`Still named by the profile ${list(plan.profiles)}.`);
  if (plan.data !== null) words.push(`Its data stays in ${plan.data}.`);
  return words;
}

/**
 * Describes what a new program under a server's name would get, worst first.
 * @param {import("../types.js").Suspended} suspended
 * @returns {string[]}
 */
export function wouldGet({ grants, secrets, data, annotated }) {
  const words = [...grants];
  if (secrets.length > 0) words.push(`use your ${secrets.length === 1 ? "secret" : "secrets"} ${list(secrets)}`);
  if (data !== null) words.push(`read and change the data in ${data}`);
  if (annotated > 0) words.push(`have ${count(annotated, "tool")} count as reviewed`);
  return words;
}

/**
 * Describes how the programs differ, if their names do not show it.
 * @param {import("../types.js").Suspended} suspended
 */
export function changeWords({ before, now, change }) {
  const named = before !== null && before !== now && !change.startsWith("its arguments");
  return named ? "" : `${change.slice(0, 1).toUpperCase()}${change.slice(1)}.`;
}

/** @param {import("../types.js").Suspended} suspended */
export const keepWords = ({ now }) => `${now} gets everything listed above.`;

/**
 * @param {import("../types.js").Suspended} suspended
 * @param {string} name
 */
export function startAfreshWords({ grants, secrets, data, annotated }, name) {
  const words = [];
  if (grants.length > 0) words.push(`${count(grants.length, "permission")} ${grants.length === 1 ? "is" : "are"} revoked.`);
  if (data !== null) words.push("Its data folder is moved aside, not deleted.");
  if (secrets.length > 0) words.push("It loses access to its secrets.");
  if (annotated > 0) words.push("Its tools have to be reviewed again.");
  return [...words, `${name} can then start as a new server.`].join(" ");
}

export const SERVERS = {
  tabs: { installed: "Installed", add: "Add", secrets: "Secrets", profiles: "Profiles" },
  tabsLabel: "Parts of this page",
  unreadable: (/** @type {string} */ why) => `The servers cannot be read: ${why}`,
  none: "No server is set up yet.",
  noneAct: "Add a server",
  cancel: "Cancel",
  entry: "Its entry",
  done: "Done",

  // One server
  details: (/** @type {string} */ name) => `Details of ${name}`,
  more: (/** @type {string} */ name) => `More about ${name}`,
  sandboxed: "sandboxed",
  notSandboxed: "not sandboxed",
  remote: "remote",
  changed: "changed",
  stopped: (/** @type {number} */ n) => (n === 1 ? "stopped" : `${n} stopped`),
  running: "running",
  idle: "not running",
  noNetwork: "no network",
  hosts: (/** @type {string[]} */ hosts, /** @type {boolean} */ asks) => (hosts.length === 0 ? "network: asks you" : `network: ${hosts.length > 2 ? `${count(hosts.length, "host")}` : hosts.join(", ")}${asks ? ", asks for others" : ""}`),
  allNetwork: "all of your network",
  sessions: (/** @type {number} */ n) => (n === 0 ? "" : count(n, "session")),
  restarts: (/** @type {number} */ n) => (n === 0 ? "" : `${count(n, "restart")}`),
  notReviewed: "tools not reviewed",
  command: "Command",
  sandbox: "Sandbox",
  isSandboxed: "it can see only what is listed here",
  isOpen: "not sandboxed: it can do anything you can",
  isRemote: "remote, cannot be sandboxed: it sees everything that is sent to it",
  version: "Version",
  usesSecrets: "Secrets",

  // Its tools
  toolsTitle: "Tools",
  noTools: "Its tools have not been reviewed yet, so agents cannot use them.",
  tools: (/** @type {number} */ n) => `${count(n, "tool")} that agents can call`,
  reviewTools: "Review its tools",
  recheckTools: "Re-check its tools",
  reviewLabel: (/** @type {string} */ name) => `Review its tools: ${name}`,
  review: { yes: "Start it and review", going: "Reviewing\u2026", done: "Reviewed", failed: "Not reviewed" },
  reviewSays: (/** @type {string} */ name) => `${name} is started in its sandbox without network or permissions, lists its tools, and is stopped. Nothing is changed.`,
  proposalOf: (/** @type {string} */ name) => `Proposed meaning of ${name}'s tools`,
  proposal: "Proposed meaning of its tools",
  noChange: "Nothing about its tools has changed.",
  refused: (/** @type {string} */ why) => `refused: ${why}`,
  noResource: "no resource",
  gone: (/** @type {string[]} */ names) => `Removed: ${names.join(", ")}`,
  save: { ready: "Save", going: "Writing\u2026", done: "Written", failed: "Not written" },
  saveToolsSays: (/** @type {string} */ name) => `Calls to ${name} will be checked against these definitions. A wrong entry lets calls through unchecked, so review every "guess".`,

  // Tools that it changed
  changedTools: "Changed tools",
  changedToolsText: "Suspended until you decide. Agents read the old definition, and their calls are refused.",
  toolStates: { suspended: "suspended", new: "new", kept: "old definition in use", removed: "removed" },
  toolHint: (/** @type {string} */ hint) => `Hint: ${hint}.`,
  partOf: (/** @type {string} */ part, /** @type {string} */ tool) => `Changed ${part} of ${tool}`,
  addedWords: "added:",
  removedWords: "removed:",
  useNew: "Use the new definition",
  useOld: "Keep the old one",
  keepTool: "Keep it",
  useAgain: "Use it again",
  removeTool: "Remove the tool",
  deciding: { going: "Saving\u2026", done: "Decided", failed: "Nothing was decided" },
  decideLabel: (/** @type {string} */ what, /** @type {string} */ tool) => `${what}: ${tool}`,
  toolsChanged: "changed its tools",

  // Its package
  install: { ready: "Install its package", yes: "Download", going: "Installing\u2026", done: "Installed", failed: "Not installed" },
  installLabel: (/** @type {string} */ name) => `Install its package: ${name}`,
  installSays: (/** @type {string} */ name) => `The package of ${name} and its dependencies are downloaded from its registry and unpacked, but not started.`,
  check: { ready: "Check for an update", going: "Checking\u2026", done: "Checked", failed: "Not checked" },
  checkLabel: (/** @type {string} */ name) => `Check for an update: ${name}`,
  newest: (/** @type {string} */ version) => `${version} is the newest.`,
  updateTitle: (/** @type {string} */ version) => `Version ${version}`,
  sameTools: "Its tools are unchanged.",
  update: { going: "Updating\u2026", done: "Updated", failed: "Not updated" },
  updateTo: (/** @type {string} */ version) => `Update to version ${version}`,
  updateSays: (/** @type {string} */ name, /** @type {string} */ to, /** @type {string} */ from) => `New sessions start version ${to} of ${name}; running sessions keep ${from}. Review changed tools afterwards.`,

  // Its processes
  processes: "Processes",
  upFor: "started",
  noRestarts: "no restarts",
  restartsOf: (/** @type {number} */ n) => (n === 1 ? "restarted once" : `restarted ${count(n, "time")}`),
  restart: { ready: "Restart", going: "Restarting\u2026", done: "Restarted", failed: "Not restarted" },
  restartLabel: (/** @type {string} */ name, /** @type {string} */ agent) => `Restart ${name} for ${agent}`,
  restartSays: (/** @type {string} */ name) => `The process of ${name} is restarted. Calls in flight fail; the session and your permissions stay.`,
  log: { ready: "Show log", going: "Reading\u2026", done: "Read", failed: "Not read" },
  logLabel: (/** @type {string} */ name, /** @type {string} */ agent) => `Show log of ${name} for ${agent}`,
  hideLog: "Hide log",
  logOf: (/** @type {string} */ name, /** @type {string} */ agent) => `Log of ${name} for ${agent}`,
  emptyLog: "The log is empty.",
  lastMessage: (/** @type {string} */ why) => `The server stopped (${why})`,

  // Always allowed
  always: "Always allowed",
  nothingExtra: "Nothing extra.",
  allowMore: "Allow a folder or host permanently",
  allowMoreText: "These are for the server itself. To let an agent work in a folder, add a permission:",
  permissions: "Permissions",
  host: "Host",
  hostHint: "A host name, or *.example.com for all its subdomains.",
  openHost: "Open this host\u2026",
  pickRead: "Pick a folder to read\u2026",
  pickWrite: "Pick a folder to change\u2026",
  planning: { going: "Checking\u2026", done: "Checked", failed: "Not possible" },
  opening: (/** @type {string} */ what, /** @type {string} */ name) => `Opening ${what} to ${name}`,
  staysOpen: "It stays allowed until you close it here.",
  open: { ready: "Allow it permanently", going: "Opening\u2026", done: "Opened", failed: "Not opened" },
  openLabel: (/** @type {string} */ what, /** @type {string} */ name) => `Allow it permanently: ${what} to ${name}`,
  close: { ready: "Close", going: "Closing\u2026", done: "Closed", failed: "Not closed" },
  closeLabel: (/** @type {string} */ what, /** @type {string} */ name) => `Close ${what} to ${name}`,
  closeSays: (/** @type {string} */ name, /** @type {string} */ what, /** @type {number} */ sessions) => `${name} no longer always has access to ${what}.${sessions > 0 ? ` ${count(sessions, "session")} ${sessions === 1 ? "ends" : "end"} now, so that this applies immediately.` : ""}`,

  // Its login
  login: { ready: "Log in\u2026", going: "Contacting the server\u2026", done: "Read", failed: "Not possible" },
  loginAgain: "Log in again\u2026",
  loginLabel: (/** @type {string} */ name) => `Log in\u2026 to ${name}`,
  loggedIn: (/** @type {string} */ issuer, /** @type {string[]} */ scopes) => `Logged in at ${issuer}${scopes.length === 0 ? "" : ` (${scopes.join(", ")})`}`,
  loginRequired: "Login required",
  loginEnded: (/** @type {string} */ issuer) => `Your login at ${issuer} has expired`,
  openBrowser: { ready: "Open browser", going: "Waiting for your browser\u2026", done: "Logged in", failed: "Not logged in" },
  openBrowserLabel: (/** @type {string} */ name) => `Open browser: log in to ${name}`,
  logout: { ready: "Log out", going: "Logging out\u2026", done: "Logged out", failed: "Not logged out" },
  logoutLabel: (/** @type {string} */ name) => `Log out of ${name}`,
  logoutSays: (/** @type {string} */ name) => `Agents can no longer use your account through ${name}.`,
  clientText: "Register an application there, with the redirect address http://127.0.0.1/callback.",
  clientId: "Client id",
  clientSecret: "Client secret, if it has one",
  clientRedirect: "Redirect address, if it needs a fixed port",
  clientRedirectExample: "http://localhost:3118/callback",

  // Its limits
  limits: "Limits",
  noLimit: "no limit",
  limitsText: "An empty field means the default.",
  limitHints: /** @type {Record<string, string>} */ ({ processor: "200 is two full processors. Not supported on every system.", "file-size": "Per file.", "tmp-size": "Uses memory." }),
  planLimits: "See what changes\u2026",
  planLimitsLabel: (/** @type {string} */ name) => `See what changes\u2026 in the limits of ${name}`,
  wholeNumber: "Enter a whole number.",
  limitsOf: (/** @type {string} */ name) => `Other limits of ${name}`,
  fileChange: "Changes to the file",
  newSessions: "Changes apply to new sessions.",
  saveLimitsLabel: (/** @type {string} */ name) => `Save: the limits of ${name}`,

  // A changed program
  decideAbout: (/** @type {string} */ name) => `Decide about ${name}`,
  isChanged: "is no longer the program you allowed",
  wouldGet: "If you keep its permissions, the new program can, without asking you:",
  oldProgram: "Old program",
  newProgram: "New program",
  unknown: "not known",
  whatChanged: "What changed",
  blocked: "The new program is blocked until you decide. Keep only if you changed or updated it yourself.",
  startAfresh: { ready: "Start afresh", going: "Starting afresh\u2026", done: "Started afresh", failed: "Nothing was decided" },
  startAfreshLabel: (/** @type {string} */ name) => `Start afresh: ${name}`,
  keepAll: { ready: "Keep everything", going: "Keeping\u2026", done: "Kept", failed: "Nothing was decided" },
  keepAllLabel: (/** @type {string} */ name) => `Keep everything: ${name}`,

  // Removing
  remove: { ready: "Remove\u2026", going: "Checking\u2026", done: "Checked", failed: "Not possible" },
  removeLabel: (/** @type {string} */ name) => `Remove\u2026 ${name}`,
  removing: (/** @type {string} */ name) => `Remove ${name}`,
  revokeToo: (/** @type {number} */ n) => `Revoke its ${count(n, "permission")} too`,
  laterServer: "A new server with this name would inherit them.",
  removeNow: { ready: "Remove it", going: "Removing\u2026", done: "Removed", failed: "Not removed" },
  removeNowLabel: (/** @type {string} */ name) => `Remove it: ${name}`,
  notAllRevoked: (/** @type {number} */ n) => `${count(n, "permission")} could not be revoked; see Permissions.`,
  revokedCount: (/** @type {number} */ n) => ` ${count(n, "permission")} revoked.`,
  removed: "Removed",
  removedEntry: "Its previous entry",
  removedEntryOf: (/** @type {string} */ name) => `The entry of ${name}`,
  putBack: { ready: "Put back", going: "Putting back\u2026", done: "Put back", failed: "Not put back" },
  putBackLabel: (/** @type {string} */ name) => `Put back ${name}`,
  isBack: (/** @type {string} */ name) => `${name} was restored. New sessions can use it.`,
  forget: { ready: "Delete its entry\u2026", yes: "Delete", going: "Deleting\u2026", done: "Deleted", failed: "Not deleted" },
  forgetLabel: (/** @type {string} */ name) => `Delete the entry of ${name}`,
  forgetSays: (/** @type {string} */ name) => `The entry of ${name} is deleted permanently and cannot be put back.`,

  // Adding
  catalogTitle: "Known servers",
  itsSandbox: "Its sandbox",
  writtenFrom: "From",
  needs: (/** @type {string} */ what) => `needs ${what}`,
  added: "added",
  add: { ready: "Add", going: "Adding\u2026", done: "Added", failed: "Not added" },
  addLabel: (/** @type {string} */ name) => `Add ${name}`,
  addMore: "Add\u2026",
  writtenInto: "Written into",
  otherTitle: "A package, an address or a bundle",
  what: "What",
  whatPlaceholder: "npx -y NAME, npm:NAME, https://\u2026 or its configuration",
  whatHint: "Adding a server does not start it.",
  name: "Name",
  nameHint: "Leave empty for the default.",
  plan: { ready: "Show what would be added", going: "Checking\u2026", done: "Checked", failed: "Not possible" },
  planned: "What would be added",
  connectsTo: "Connects to",
  starts: "Starts",
  keyKeptAs: "Your key is stored as",
  inPlace: ", replacing the one with this name",
  plainValues: "A value is stored unprotected. If it is a key, store it under Secrets, and write keyring:NAME in its place.",
  keptAlready: (/** @type {string} */ what) => `This name already has ${what}. A different program gets none of it until you decide.`,
  notStarted: "Adding does not start it.",
  addedRemote: "It is remote, so it cannot be sandboxed.",
  addedAsks: "You are asked about each of its tools until you have reviewed them.",
  addIt: { ready: "Add it", going: "Adding\u2026", done: "Added", failed: "Not added" },
  addItLabel: (/** @type {string} */ name) => `Add it: ${name}`,
  changeEntered: "Change what you entered",
  choose: { ready: "Choose a bundle (.mcpb)\u2026", going: "Choosing\u2026", done: "Picker closed", failed: "Not possible" },
  bundle: (/** @type {string} */ title) => `The bundle ${title}`,
  claims: "It claims to be",
  by: "by",
  noDescription: "no description.",
  storedSecret: "Stored with your secrets, only for this server. ",
  optional: "Can be left empty.",
  leftOut: "Can be left out. ",
  pick: { going: "Picking\u2026", done: "Picker closed", failed: "Not picked" },
  pickFolder: "Pick a folder\u2026",
  pickFolders: "Pick folders\u2026",
  pickFile: "Pick a file\u2026",
  pickFiles: "Pick files\u2026",
  suggests: "Its maker suggests",
  suggestsEnd: "; pick it to use it. ",
  staysClosed: "It stays closed until you allow it for the agent that uses it.",

  // Secrets
  places: {
    keyring: "Stored in your desktop's keyring, and passed only to the servers that name them.",
    locked: "Stored in an encrypted file, which is locked.",
    unlocked: "Stored in an encrypted file, unlocked until IronCurtain quits.",
    nowhere: "Keys that servers need.",
  },
  secretsUnavailable: (/** @type {string} */ why) => `Your secrets are unavailable: ${why}`,
  missing: (/** @type {string[]} */ names) => `Missing: ${list(names)}. A server needs ${names.length === 1 ? "it" : "them"}.`,
  noSecrets: "No secrets yet. Write keyring:NAME where a server needs a key, and store the key here.",
  keptIn: "Stored in",
  plainUnknown: (/** @type {string} */ why) => `Searching for unprotected keys failed: ${why}`,
  plainTitle: "Unprotected keys",
  plainText: (/** @type {number} */ n) => `${n === 1 ? "A key is" : "Keys are"} stored unprotected in your server settings:`,
  of: "of",
  move: { going: "Moving\u2026", done: "Moved", failed: "Not moved" },
  moveToKeyring: "Move to the keyring",
  moveToFile: "Move to the encrypted file",
  moveSays: (/** @type {boolean} */ isKeyring, /** @type {string[]} */ names) => `Stores ${names.length === 1 ? "it" : "them"} in ${isKeyring ? "the keyring" : "the encrypted file"}. The settings then refer to ${list(names)}.`,
  usedBy: (/** @type {string[]} */ names) => (names.length > 0 ? `used by ${list(names)}` : "no server uses it"),
  removeSecret: { ready: "Remove", going: "Removing\u2026", done: "Removed", failed: "Not removed" },
  removeSecretLabel: (/** @type {string} */ name) => `Remove the secret ${name}`,
  removeSecretSays: (/** @type {string} */ name, /** @type {string[]} */ users) => `${name} is deleted permanently. ${users.length > 0 ? `${list(users)} cannot start without it.` : "No server uses it."}`,
  addSecret: "Add a secret",
  secret: "Secret",
  keep: { going: "Storing\u2026", done: "Stored", failed: "Not stored" },
  keepNew: "Store the secret",
  replace: "Replace the secret",
  afterRestart: "Running servers get it when they restart.",
  passphraseOf: "Passphrase of your secrets",
  noKeyring: "There is no keyring here",
  noKeyringText: "Your desktop has no password store, such as GNOME Keyring or KWallet. Start one, or store secrets in a file encrypted with a passphrase, which you type here after each start of IronCurtain. It cannot be recovered.",
  locked: "Your secrets are locked",
  lockedText: (/** @type {string[]} */ names) => `Servers that need ${list(names)} do not start until you unlock them.`,
  passphrase: "Passphrase",
  newPassphrase: "New passphrase",
  fourWords: "At least four words.",
  sameAgain: "Repeat the passphrase",
  makeFile: { ready: "Create the encrypted file", going: "Creating\u2026", done: "Created", failed: "Not created" },
  unlock: { ready: "Unlock", going: "Unlocking\u2026", done: "Unlocked", failed: "Not unlocked" },
  differ: "The two passphrases differ.",
  wouldBe: "It will be stored in",
  is: "Stored in",

  // Profiles
  profilesText: "Sets of servers that an agent uses through one entry.",
  profilesUnreadable: (/** @type {string} */ why) => `The profiles cannot be read: ${why}`,
  noProfiles: "No profile yet: a set of servers that an agent uses through one entry.",
  newProfile: "Create a profile\u2026",
  givenTo: (/** @type {string[]} */ names) => `used by ${list(names)}`,
  givenToNone: "no client uses it yet",
  give: "give it to one",
  noLonger: (/** @type {string[]} */ names) => `No longer exists: ${list(names)}.`,
  changeProfile: "Change\u2026",
  changeProfileLabel: (/** @type {string} */ name) => `Change\u2026 the profile ${name}`,
  removeProfile: { ready: "Remove", going: "Removing\u2026", done: "Removed", failed: "Not removed" },
  removeProfileLabel: (/** @type {string} */ name) => `Remove the profile ${name}`,
  profile: (/** @type {string} */ name) => `The profile ${name}`,
  aNewProfile: "A new profile",
  profileName: "Letters, digits, - and _.",
  itsServers: "Its servers",
  profileChange: "Change it",
  profileMake: "Create it",
  removeProfileSays: (/** @type {string[]} */ clients) => (clients.length > 0 ? `${list(clients)} cannot start its servers until you reconnect it under Agents. The servers stay.` : "No client uses it. The servers stay."),
  profileSaving: { going: "Writing\u2026", done: "Written", failed: "Not written" },
};
