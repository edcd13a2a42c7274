import { inspect } from 'node:util';
import { logDetails } from './log-details.js';
import { SessionsError } from './sessions.error.js';
import { fieldOf, withoutProxy } from './thrown.js';

/** The maximum depth of causes in a log. */
const MAX_CAUSES = 5;
/** The maximum length of a message in a log. */
const MAX_MESSAGE = 2000;
const WORD = /^[\w.$:-]{1,64}$/;
const FRAME = /^ {4}at (?:.+ \(.+\)|.+:\d+:\d+)$/;
const OF_NODE = /\(?node:internal\//;
/** The folder of this package in stack frames. `undefined` in a bundle, whose frames belong to one file. */
const FOLDER = /((?:file:|\/|\w:\\)[^\s()]*)common[\\/]error-trace\.\w+:\d+/.exec(new Error('here').stack ?? '')?.[1];

/** What to do about errors of other packages. */
const advice = new WeakMap<object, string>();

/** Adds a sentence that every log shows with the error, also in production: it must contain no ids, user input or values. */
export function addAdvice(error: object, sentence: string): void {
  advice.set(error, sentence);
}

/**
 * Returns an error for a log, with its causes (NST-22, DAY-02). If logs may show messages: class, code, message, cure and the stack
 * without the frames of this package. Otherwise: class, code and the whole stack, because a message may contain ids, user input or
 * passwords of connections. A typed error may then provide a sentence: `forLog`. Both include the sentence of {@link addAdvice}.
 */
export function traceOf(error: unknown): string {
  const { messages } = logDetails();
  const parts: string[] = [];
  for (let next = withoutProxy(error); parts.length <= MAX_CAUSES;) {
    const title = messages ? shownTitle(next) : hiddenTitle(next);
    const frames = messages ? ownFrames(next) : framesOf(next);
    parts.push([title, ...adviceOn(next), ...frames].join('\n'));
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

function shownTitle(error: unknown): string {
  if (typeof error === 'function') return hiddenTitle(error);
  if (typeof error !== 'object' || error === null) {
    return `Thrown: ${inspect(error, { maxStringLength: MAX_MESSAGE })}`;
  }
  const [message, cure] = ['message', 'cure'].map((field) => fieldOf(error, field));
  const hasMessage = typeof message === 'string' && message !== '';
  const title = hasMessage ? `${titleOf(error)}: ${message.slice(0, MAX_MESSAGE)}` : titleOf(error);
  if (typeof cure !== 'string' || cure === '' || title.includes(cure)) return title;
  return `${title}\n${cure.slice(0, MAX_MESSAGE)}`;
}

function hiddenTitle(error: unknown): string {
  if (typeof error !== 'object' || error === null) return `Thrown: ${typeof error}`;
  const sentence = SessionsError.isInstance(error) ? error.forLog : undefined;
  return sentence === undefined ? titleOf(error) : `${titleOf(error)}: ${sentence}`;
}

function adviceOn(error: unknown): string[] {
  const sentence = typeof error === 'object' && error !== null ? advice.get(error) : undefined;
  return sentence === undefined ? [] : [sentence];
}

function titleOf(error: unknown): string {
  const code = fieldOf(error, 'code');
  return isWord(code) ? `${classOf(error)} [${code}]` : classOf(error);
}

function classOf(error: unknown): string {
  const name = fieldOf(error, 'name');
  // Most classes do not override the name of Error.
  const own = name === 'Error' && error instanceof Error ? fieldOf(fieldOf(error, 'constructor'), 'name') : name;
  return isWord(own) ? own : 'Error';
}

/** Returns the frames of the application and its libraries, or all frames of an unexpected error inside this package. */
function ownFrames(error: unknown): string[] {
  const frames = framesOf(error);
  const own = frames.filter((frame) => !OF_NODE.test(frame) && !(FOLDER !== undefined && frame.includes(FOLDER)));
  return own.length > 0 || SessionsError.isInstance(error) ? own : frames;
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
