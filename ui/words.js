// Times, counts and paths in words. Pure functions.

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** "just now", "2 min ago", "3 h ago", or the date. */
export function ago(then, now) {
  const past = now - then;
  if (past < 10_000) return "just now";
  if (past < MINUTE) return `${Math.floor(past / 1000)} s ago`;
  if (past < HOUR) return `${Math.floor(past / MINUTE)} min ago`;
  if (past < DAY) return `${Math.floor(past / HOUR)} h ago`;
  return new Date(then).toLocaleDateString();
}

/** "14 min left". */
export function left(then, now) {
  const rest = then - now;
  if (rest <= 0) return "ending";
  if (rest < MINUTE) return `${Math.ceil(rest / 1000)} s left`;
  if (rest < HOUR) return `${Math.ceil(rest / MINUTE)} min left`;
  if (rest < DAY) return `${Math.ceil(rest / HOUR)} h left`;
  return `${Math.ceil(rest / DAY)} days left`;
}

/** The moment in full, for hovering. */
export const exact = (then) => new Date(then).toLocaleString();

/** "1 session", "2 sessions". */
export const count = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

/** "read", "read and write", "read, write and delete". */
export function list(words) {
  if (words.length < 2) return words.join("");
  return `${words.slice(0, -1).join(", ")} and ${words[words.length - 1]}`;
}

/** A path in two parts, the home directory as `~`: the quiet beginning, and the last two names. */
export function pathParts(path, home) {
  let short = path;
  if (home && home !== "/") {
    if (path === home) short = "~";
    else if (path.startsWith(`${home}/`)) short = `~${path.slice(home.length)}`;
  }
  const names = short.split("/");
  if (names.length <= 2) return ["", short];
  return [`${names.slice(0, -2).join("/")}/`, names.slice(-2).join("/")];
}
