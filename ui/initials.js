// The initials and the colour of an agent. Pure functions.

const HUES = "abcdefgh";

/**
 * Returns the initials of an agent's first two words, or the first two letters of its only word.
 * @param {string} name
 */
export function initials(name) {
  const [first = "", second = ""] = name.split(/[\s_-]+/u).filter(Boolean);
  const letters = second ? [...first].slice(0, 1).concat([...second].slice(0, 1)) : [...first].slice(0, 2);
  return letters.join("") || "?";
}

/**
 * Returns the CSS class for an agent's colour, which depends only on the agent's name.
 * @param {string} name
 */
export function hue(name) {
  let sum = 0;
  for (const letter of name) sum = (sum * 31 + (letter.codePointAt(0) ?? 0)) % 65_521;
  return `hue-${HUES[sum % HUES.length]}`;
}
