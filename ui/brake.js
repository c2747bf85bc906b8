// The lockdown button in the window's frame. Locking down needs no confirmation, because it is an emergency brake.

import { actButton } from "./action_button.js";
import * as backend from "./backend.js";
import { html, nothing } from "./html.js";
import * as parts from "./parts.js";
import { focusOn } from "./state.js";
import { FRAME } from "./texts/frame.js";

/**
 * Returns the button that locks down or ends the lockdown, and a menu that also ends all sessions.
 * @param {import("./types.js").Status} status
 */
export const brake = ({ lockdown, sessions }) => html`
  <div class="brake">
    ${lockdown ? endLockdown() : lockDown()}
    ${sessions > 0 ? parts.menu("lockdown-more", FRAME.lockDownMore, lockDownAndEnd, { text: parts.icon("chevron-down"), up: true, kind: "" }) : nothing}
  </div>`;

const lockDown = () =>
  actButton({
    key: "lockdown",
    ready: FRAME.lockDown,
    going: FRAME.locking,
    done: FRAME.lockedDown,
    failed: FRAME.notLocked,
    again: true,
    kind: "stop",
    act: async () => {
      await backend.lockDown(true, false);
      focusOn("lockdown-off");
    },
  });

const endLockdown = () =>
  actButton({
    key: "lockdown-off",
    ready: FRAME.endLockdown,
    going: FRAME.ending,
    done: FRAME.ended,
    failed: FRAME.notEnded,
    again: true,
    act: async () => {
      await backend.lockDown(false, false);
      focusOn("lockdown");
    },
  });

const lockDownAndEnd = () =>
  actButton({
    key: "lockdown-end",
    ready: FRAME.lockDownAndEnd,
    going: FRAME.locking,
    done: FRAME.lockedDown,
    failed: FRAME.notLocked,
    again: true,
    kind: "stop",
    says: FRAME.lockDownAndEndSays,
    act: () => backend.lockDown(true, true),
  });
