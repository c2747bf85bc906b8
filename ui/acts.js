// Buttons that take away or keep, and what they say while they do.
// A grant is "taken back" only after the app has answered that it is gone everywhere.

import * as backend from "./backend.js";
import { el, say } from "./dom.js";

/** What became of each id, so that a redraw in between does not lose it. */
const states = new Map();

export function takeBackButton(grant, path, redraw) {
  return actButton({
    key: `take-back:${grant}`,
    words: ["Take back", "Taking back\u2026", "Taken back", "Not taken back"],
    label: `Take back ${path}`,
    act: () => backend.takeBack(grant),
    redraw,
  });
}

export function endSessionButton(session, name, redraw) {
  return actButton({
    key: `end:${session}`,
    words: ["End session", "Ending\u2026", "Ended", "Not ended"],
    label: `End the session of ${name}`,
    act: () => backend.endSession(session),
    redraw,
  });
}

export function keepButton(session, file, redraw) {
  return actButton({
    key: `keep:${session}:${file.path}`,
    words: ["Keep", "Keeping\u2026", "Kept", "Not kept"],
    label: `Keep ${file.shown}`,
    act: () => backend.decideLeft(session, file.path, "keep"),
    redraw,
  });
}

export function quarantineButton(session, file, redraw) {
  return actButton({
    key: `quarantine:${session}:${file.path}`,
    words: ["Quarantine", "Moving\u2026", "In quarantine", "Not moved"],
    label: `Quarantine ${file.shown}`,
    act: () => backend.decideLeft(session, file.path, "quarantine"),
    redraw,
  });
}

function actButton({ key, words, label, act, redraw }) {
  const [ready, going, done, failed] = words;
  const state = states.get(key) ?? { at: "ready" };
  const press = async () => {
    states.set(key, { at: "going" });
    redraw();
    try {
      await act();
      states.set(key, { at: "done" });
      say(`${done}: ${label}`);
    } catch (failure) {
      states.set(key, { at: "ready", problem: backend.sentence(failure) });
      say(`${failed}: ${label}`);
    }
    redraw();
  };
  if (state.at === "done") return el("span", { class: "badge allow", "data-key": key }, done);
  const busy = state.at === "going";
  return [
    el("button", { type: "button", "data-key": key, "aria-label": label, disabled: busy, onclick: press }, busy ? going : ready),
    state.problem && el("span", { class: "small bad", role: "alert" }, `${failed}: ${state.problem}`),
  ];
}
