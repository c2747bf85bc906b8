// The only file that talks to the app. It can show, take away, and keep what is there; nothing here can allow anything.

const { invoke } = window.__TAURI__.core;
const { listen } = window.__TAURI__.event;

export const snapshot = () => invoke("snapshot");
export const activity = () => invoke("activity");
export const takeBack = (grant) => invoke("take_back", { grant });
export const endSession = (session) => invoke("end_session", { session });
export const decideLeft = (session, path, choice) => invoke("decide_left", { session, path, choice });
export const checkLog = () => invoke("check_log");
export const showQuestion = () => invoke("show_question");
export const onChange = (then) => listen("changed", then);

/** The sentence of a failure, whatever was thrown. */
export const sentence = (failure) =>
  failure && typeof failure.message === "string" ? failure.message : String(failure);
