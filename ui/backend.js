// The only file that talks to the app. Each function is one command of `src-tauri/src/window`, which checks its arguments.

/** @typedef {import("./types.js").Snapshot} Snapshot */

const { invoke } = window.__TAURI__.core;
const { listen } = window.__TAURI__.event;

/** @type {() => Promise<Snapshot>} */
export const snapshot = () => invoke("snapshot");
/** @type {(then: () => void) => Promise<unknown>} */
export const onChange = (then) => listen("changed", then);
export const showQuestion = () => invoke("show_question");

// Sessions
/** @param {string} session */
export const endSession = (session) => invoke("end_session", { session });
/** @param {string} session */
export const restartServer = (session) => invoke("restart_server", { session });
/** @type {(session: string, path: string, choice: "keep" | "quarantine" | "put-back" | "exchange" | "delete") => Promise<unknown>} */
export const decideFile = (session, path, choice) => invoke("decide_file", { session, path, choice });

/** @param {string} session @param {boolean} on */
export const pauseSession = (session, on) => invoke("pause_session", { session, on });
/** @param {boolean} on @param {boolean} endSessions */
export const lockDown = (on, endSessions) => invoke("lock_down", { on, end_sessions: endSessions });

// Expired questions and session denials
/** @param {string} question */
export const forgetQuestion = (question) => invoke("forget_question", { question });
/** @type {(question: string) => Promise<boolean>} Opens the dialog. Resolves to true if the user allows. */
export const askAgain = (question) => invoke("ask_again", { question });

// Grants
/** @type {(grants: string[]) => Promise<import("./types.js").RevokedGrant[]>} */
export const revokeGrants = (grants) => invoke("revoke_grants", { grants });
/** @type {(grant: string) => Promise<unknown>} */
export const restoreGrant = (grant) => invoke("restore_grant", { grant });
/** @type {(grant: string, terms: import("./types.js").Terms) => Promise<boolean>} False if the picker was cancelled. */
export const changeGrant = (grant, terms) => invoke("change_grant", { grant, terms });
/** @type {(gift: import("./types.js").RequestedGrant) => Promise<string | null>} The granted object; null if the picker was cancelled. */
export const grantBeforehand = (gift) => invoke("grant_beforehand", { gift });

// Rules
/** @type {() => Promise<import("./types.js").Rules>} */
export const rules = () => invoke("rules");
/** @type {(call: import("./types.js").TriedCall) => Promise<import("./types.js").Explained>} */
export const explain = (call) => invoke("explain", { call });
/** @type {(text: string) => Promise<import("./types.js").DryRun>} */
export const tryRules = (text) => invoke("try_rules", { text });
/** @type {(text: string, before: string) => Promise<unknown>} */
export const saveRules = (text, before) => invoke("save_rules", { text, before });

// Clients
/** @type {() => Promise<import("./types.js").FoundClient[]>} */
export const foundClients = () => invoke("found_clients");
/** @type {(id: string, wish: import("./types.js").ClientWish) => Promise<import("./types.js").PlannedChange>} */
export const planClient = (id, wish) => invoke("plan_client", { id, wish });
/** @type {(id: string) => Promise<string>} */
export const writeClient = (id) => invoke("write_client", { id });

// Servers
/** @type {() => Promise<import("./types.js").Servers>} */
export const servers = () => invoke("servers");
/** @type {(server: { id: string, name: string, settings: Record<string, string> }) => Promise<string[]>} */
export const addServer = (server) => invoke("add_server", { server });
/** @type {(name: string) => Promise<string>} */
export const installServer = (name) => invoke("install_server", { name });
/** @type {(name: string) => Promise<import("./types.js").FoundUpdate>} */
export const checkForUpdate = (name) => invoke("check_for_update", { name });
/** @type {(name: string) => Promise<string>} */
export const applyUpdate = (name) => invoke("apply_update", { name });
/** @type {(name: string) => Promise<import("./types.js").Proposed>} */
export const reviewTools = (name) => invoke("review_tools", { name });
/** @type {(name: string) => Promise<string>} */
export const saveTools = (name) => invoke("save_tools", { name });

/** @type {(wanted: { what: string, name: string }) => Promise<import("./types.js").PlannedServer>} */
export const planServer = (wanted) => invoke("plan_server", { wanted });
/** @type {() => Promise<string>} Writes the plan that was shown. */
export const writeServer = () => invoke("write_server");
/** @type {() => Promise<import("./types.js").OpenedBundle | null>} Null if the picker was cancelled. */
export const chooseBundle = () => invoke("choose_bundle");
/** @type {(setting: string) => Promise<string[] | null>} Null if the picker was cancelled. */
export const pickForBundle = (setting) => invoke("pick_for_bundle", { setting });
/** @type {(wanted: { name: string, values: Record<string, string[]>, without: string[] }) => Promise<import("./types.js").PlannedServer>} */
export const planBundle = (wanted) => invoke("plan_bundle", { wanted });
export const discardBundle = () => invoke("discard_bundle");
/** @type {(name: string) => Promise<import("./types.js").PlannedRemoval>} */
export const planRemoval = (name) => invoke("plan_removal", { name });
/** @type {() => Promise<string>} Removes the server that was shown. */
export const removeServer = () => invoke("remove_server");
/** @type {(name: string) => Promise<unknown>} */
export const restoreServer = (name) => invoke("restore_server", { name });
/** @type {(name: string) => Promise<unknown>} */
export const forgetServer = (name) => invoke("forget_server", { name });
/** @type {(server: string, found: string, keep: boolean) => Promise<string>} Decides about the program that was shown. */
export const decideIdentity = (server, found, keep) => invoke("decide_identity", { server, found, keep });
/** @type {(server: string, change: string, decision: "update" | "keep" | "remove") => Promise<string>} Decides about the definition that was shown. */
export const decideTool = (server, change, decision) => invoke("decide_tool", { server, change, decision });
/** @type {(server: string, wanted: import("./types.js").WantedOpening) => Promise<{ what: string, words: string } | null>} Null if the picker was cancelled. */
export const planOpening = (server, wanted) => invoke("plan_opening", { server, wanted });
/** @type {() => Promise<string>} Opens the host or folder that was shown. */
export const writeOpening = () => invoke("write_opening");
/** @type {(server: string, opening: import("./types.js").Opening) => Promise<string>} */
export const closeOpening = (server, opening) => invoke("close_opening", { server, opening });
/** @type {(server: string, client: { id: string, secret: string, redirect: string } | null) => Promise<import("./types.js").PlannedLogin>} The client, if the user registered one. */
export const planLogin = (server, client) =>
  invoke("plan_login", { server, client_id: client?.id ?? null, client_secret: client?.secret ?? null, redirect: client?.redirect ?? null });
/** @type {(number: number) => Promise<string | null>} Starts the login that was shown, and waits for the browser. Null if it was cancelled. */
export const logIn = (number) => invoke("log_in", { number });
/** @type {(number: number) => Promise<void>} Cancels a login that waits for the browser. */
export const cancelLogin = (number) => invoke("cancel_login", { number });
/** @type {(server: string) => Promise<string>} */
export const logOut = (server) => invoke("log_out", { server });
/** @type {(server: string, wanted: Record<string, number | null | undefined>) => Promise<import("./types.js").PlannedLimits>} Null means the default. */
export const planLimits = (server, wanted) => invoke("plan_limits", { server, wanted });
/** @type {() => Promise<string>} Writes the plan that was shown. */
export const writeLimits = () => invoke("write_limits");

// Profiles
/** @type {() => Promise<import("./types.js").Profile[]>} */
export const profiles = () => invoke("profiles");
/** @type {(name: string, servers: string[]) => Promise<unknown>} */
export const changeProfile = (name, servers) => invoke("change_profile", { name, servers });
/** @type {(name: string) => Promise<unknown>} */
export const deleteProfile = (name) => invoke("delete_profile", { name });

/** @type {(session: string) => Promise<string[]>} */
export const serverLog = (session) => invoke("server_log", { session });

// Secrets: the app returns names, never values
/** @type {() => Promise<import("./types.js").Secrets>} */
export const secrets = () => invoke("secrets");
/** @type {(name: string, value: string) => Promise<unknown>} */
export const setSecret = (name, value) => invoke("set_secret", { name, value });
/** @type {(name: string) => Promise<unknown>} */
export const removeSecret = (name) => invoke("remove_secret", { name });
/** @type {() => Promise<import("./types.js").PlainSecret[]>} Unprotected secrets in the servers' settings file. */
export const planSecretMove = () => invoke("plan_secret_move");
/** @type {() => Promise<string>} Moves the secrets that were shown. */
export const writeSecretMove = () => invoke("write_secret_move");
/** @type {(passphrase: string) => Promise<unknown>} */
export const unlockSecrets = (passphrase) => invoke("unlock_secrets", { passphrase });
/** @type {(passphrase: string) => Promise<unknown>} */
export const makeSecretsFile = (passphrase) => invoke("make_secrets_file", { passphrase });

// Activity
/** @type {(wanted: import("./types.js").Wanted, before: number | null, most: number) => Promise<import("./types.js").Calls>} */
export const activity = (wanted, before, most) => invoke("activity", { wanted, before, most });
/** @type {(seq: number) => Promise<[string, string][]>} Everything on record about a call, as pairs of label and value. */
export const callDetails = (seq) => invoke("call_details", { seq });
/** @type {(wanted: import("./types.js").Wanted, format: "jsonl" | "csv") => Promise<string | null>} */
export const exportActivity = (wanted, format) => invoke("export_activity", { wanted, format });
/** @type {() => Promise<import("./types.js").LogCheck>} */
export const checkLog = () => invoke("check_log");

// First steps
/** @type {() => Promise<"allowed" | "denied" | "unanswered">} */
export const askPracticeQuestion = () => invoke("ask_practice_question");
/** @type {() => Promise<import("./types.js").PrivateFolderAttempt>} */
export const tryPrivateFolder = () => invoke("try_private_folder");
/** @type {(write: boolean) => Promise<string | null>} The folder that was picked; null if the picker was cancelled. */
export const startingFolder = (write) => invoke("starting_folder", { write });
export const finishFirstSteps = () => invoke("finish_first_steps");

// Settings
/** @type {() => Promise<import("./types.js").Settings>} */
export const settings = () => invoke("settings");
/** @type {(changes: Partial<import("./types.js").Settings>) => Promise<import("./types.js").Settings>} */
export const changeSettings = (changes) => invoke("change_settings", { changes });
/** @type {() => Promise<import("./types.js").RecordExport>} */
export const recordExport = () => invoke("record_export");
/** @type {(paths: import("./types.js").ExportedPaths) => Promise<string[]>} The newest entries as they would be sent, as JSON. */
export const exportSample = (paths) => invoke("export_sample", { paths });
/** @type {(url: string, paths: import("./types.js").ExportedPaths | null, token: string) => Promise<import("./types.js").RecordExport>} */
export const enableExport = (url, paths, token) => invoke("enable_export", { url, paths, token });
/** @type {() => Promise<import("./types.js").RecordExport>} */
export const disableExport = () => invoke("disable_export");

/**
 * Returns the message of any thrown value.
 * @param {unknown} failure
 * @returns {string}
 */
export const sentence = (failure) =>
  failure && typeof failure === "object" && "message" in failure ? String(failure.message) : String(failure);

/**
 * Waits for an answer or a failure.
 * @template T
 * @param {Promise<T>} answer
 * @returns {Promise<{ value: T | null, problem: string }>}
 */
export const outcome = (answer) => answer.then((value) => ({ value, problem: "" }), (failure) => ({ value: null, problem: sentence(failure) }));

// Consent page
/** @type {() => Promise<import("./types.js").QuestionPage>} */
export const consentPage = () => invoke("consent_page");
/** @type {() => Promise<import("./types.js").QuestionChanges>} */
export const consentChanging = () => invoke("consent_changing");
/** @type {(number: number, did: import("./types.js").QuestionAct) => Promise<import("./types.js").QuestionChanges>} */
export const consentTell = (number, did) => invoke("consent_tell", { number, did });
