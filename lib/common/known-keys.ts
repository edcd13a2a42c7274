import { closestMatch } from 'leven';

/** The start of every rule for an unknown key. */
export const UNKNOWN_KEY = 'is not a known key.';

/**
 * Returns the rule that an unknown key breaks. It lists the allowed keys and suggests the closest one if it differs by at most two characters.
 * @param known the allowed keys
 */
export function unknownKeyRule(key: string, known: readonly string[]): string {
  const close = closestOf(key, known);
  const suggestion = close === undefined ? '' : ` Did you mean ${close}?`;
  return `${UNKNOWN_KEY}${suggestion} Allowed: ${known.join(', ')}.`;
}

/** Returns the known name that differs from the given one by at most two characters. */
export function closestOf(key: string, known: readonly string[]): string | undefined {
  const maxDistance = Math.min(2, Math.floor(key.length / 2));
  const lowercase = known.map((name) => name.toLowerCase());
  const match = closestMatch(key.toLowerCase(), lowercase, { maxDistance });
  return match === undefined ? undefined : known[lowercase.indexOf(match)];
}
