// Ensures that a plan is written only as it is shown. The app keeps only the newest plan of each kind, and writes that plan.
//
// - While a plan is being replaced, and until its replacement is drawn, it cannot be written.

/** Numbers of pending plans and of completed plans, by kind. @type {Map<string, { pending: number, version: number }>} */
const slots = new Map();

/** @param {string} slot */
function of(slot) {
  const found = slots.get(slot) ?? { pending: 0, version: 0 };
  slots.set(slot, found);
  return found;
}

/**
 * Makes a plan.
 * @template T
 * @param {string} slot
 * @param {() => Promise<T>} plan
 */
export async function planning(slot, plan) {
  const one = of(slot);
  one.pending += 1;
  try {
    return await plan();
  } finally {
    one.pending -= 1;
    one.version += 1;
  }
}

/** Returns the version of the plan that is drawn now. @param {string} slot */
export const planVersion = (slot) => of(slot).version;

/**
 * Returns whether this version is still the newest plan.
 * @param {string} slot
 * @param {number} version
 */
export const isCurrentPlan = (slot, version) => of(slot).pending === 0 && of(slot).version === version;
