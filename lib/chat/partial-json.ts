/** The next token of JSON. Strings, numbers and literals may be cut off by the end of the text. */
const TOKEN =
  /\s*(?:(?<open>[{[])|(?<close>[}\]])|(?<separator>[,:])|(?<string>"(?:[^"\\]|\\u[\da-f]{4}|\\[^u])*)(?<quote>"?)|(?<number>-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)|(?<literal>[tfn][a-z]*))/iy;
const LITERALS = ['true', 'false', 'null'];

/**
 * Parses the beginning of a JSON text, as clients do while a model writes the input of a tool: open strings, arrays and
 * objects are closed, and literals are completed. Left out are keys without a value and the incomplete end of a number.
 * @returns `undefined` if the text contains no value yet, is not JSON, or has keys that clients reject
 */
export function parsePartialJson(text: string): unknown {
  return tryParse(text) ?? tryParse(completed(text));
}

function completed(text: string): string {
  /** The brackets that close what is open, the innermost first. */
  let closers = '';
  let isKey = false;
  /** The longest beginning that can be completed. */
  let valid = '';
  TOKEN.lastIndex = 0;
  for (let token = TOKEN.exec(text); token?.groups; token = TOKEN.exec(text)) {
    const { open, close, separator, string, quote, literal } = token.groups;
    if (separator) {
      isKey = separator === ',' && closers.startsWith('}');
      continue;
    }
    if (open) closers = (open === '{' ? '}' : ']') + closers;
    if (close) closers = closers.slice(1);
    if (isKey && string) continue;
    isKey = open === '{';
    const end = string && !quote ? '"' : restOf(literal);
    valid = text.slice(0, TOKEN.lastIndex) + end + closers;
  }
  return valid;
}

function restOf(literal: string | undefined): string {
  if (literal === undefined) return '';
  return LITERALS.find((known) => known.startsWith(literal))?.slice(literal.length) ?? '';
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text, rejectPrototypes) as unknown;
  } catch {
    return undefined;
  }
}

/** Clients reject JSON with a key `__proto__`, or a key `constructor` whose value has a key `prototype`. */
function rejectPrototypes(key: string, value: unknown): unknown {
  if (key === '__proto__') throw new SyntaxError();
  if (key === 'constructor' && typeof value === 'object' && value !== null && Object.hasOwn(value, 'prototype'))
    throw new SyntaxError();
  return value;
}
