import { SessionsError } from './sessions.error.js';
import { fieldOf, withoutProxy } from './thrown.js';

/** The maximum depth of causes in a log. */
const MAX_CAUSES = 5;
const WORD = /^[\w.$:-]{1,64}$/;
const FRAME = /^ {4}at (?:.+ \(.+\)|.+:\d+:\d+)$/;

/**
 * Returns an error for a log: its class, code and stack frames, and those of its causes (NST-22). Omits messages, which
 * may contain ids, user input or passwords of connections. A typed error may provide a sentence for logs: `forLog`.
 */
export function traceOf(error: unknown): string {
  const parts: string[] = [];
  for (let next = withoutProxy(error); parts.length <= MAX_CAUSES;) {
    parts.push([titleOf(next), ...framesOf(next)].join('\n'));
    const cause = fieldOf(next, 'cause');
    if (cause === undefined || cause === null) break;
    next = withoutProxy(cause);
  }
  return parts.join('\ncaused by ');
}

/** Returns the error's code, or else its class, for metrics. Values that are not words are omitted. */
export function errorType(error: unknown): string {
  const code = fieldOf(error, 'code');
  return isWord(code) ? code : classOf(withoutProxy(error));
}

function titleOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return `Thrown: ${typeof error}`;
  const code = fieldOf(error, 'code');
  const title = isWord(code) ? `${classOf(error)} [${code}]` : classOf(error);
  const sentence = error instanceof SessionsError ? error.forLog : undefined;
  return sentence === undefined ? title : `${title}: ${sentence}`;
}

function classOf(error: unknown): string {
  const name = fieldOf(error, 'name');
  // Most classes do not override the name of Error.
  const own = name === 'Error' && error instanceof Error ? fieldOf(fieldOf(error, 'constructor'), 'name') : name;
  return isWord(own) ? own : 'Error';
}

/** Returns the stack frames. A message may look like a frame, so it is cut off first. */
function framesOf(error: unknown): string[] {
  const [stack, message] = ['stack', 'message'].map((field) => fieldOf(error, field));
  if (typeof stack !== 'string' || typeof message !== 'string') return [];
  const start = stack.indexOf(message);
  if (start === -1) return [];
  return stack
    .slice(start + message.length)
    .split('\n')
    .filter((line) => FRAME.test(line));
}

function isWord(value: unknown): value is string {
  return typeof value === 'string' && WORD.test(value);
}
