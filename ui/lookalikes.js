// Finds names of agents that look like another agent's name. Pure functions.
//
// - Names that differ only in case and separators count as the same name, because an agent's name can come from its program
//   file or from its settings.

/** Characters that look like others, in lower case. @type {Record<string, string>} */
const LOOKALIKES = { 0: "o", 1: "l", i: "l", "|": "l", 5: "s", "\u0430": "a", "\u0435": "e", "\u043e": "o", "\u0440": "p", "\u0441": "c", "\u0443": "y", "\u0445": "x" };

/** Removes case and separators. @param {string} name */
const plain = (name) => name.toLowerCase().replace(/[-_. ]/g, "");

/** Returns a form that is equal for names that look alike. Also removes invisible characters. @param {string} name */
const shape = (name) => [...plain(name).replace(/\p{Cf}|\p{Default_Ignorable_Code_Point}/gu, "")].map((letter) => LOOKALIKES[letter] ?? letter).join("");

/**
 * Returns another name that this one looks like, if any.
 * @param {string} name
 * @param {string[]} names
 */
export const lookalike = (name, names) => names.find((other) => plain(other) !== plain(name) && shape(other) === shape(name));
