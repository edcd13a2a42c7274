import type { RE2JS, RE2Set } from 're2js';
import { requireInstalled } from '../common/load-peer.js';
import { type OrchestrationCondition } from './orchestration-config.js';

type MessageCondition = Extract<OrchestrationCondition, { type: 'message_matches' }>;

interface Engine {
  readonly RE2JS: typeof RE2JS;
  readonly RE2Set: typeof RE2Set;
}

/** The number of bytes of a message that expressions read, as UTF-8. */
const MAX_BYTES = 4096;
/**
 * The maximum number of instructions of a compiled expression. An instruction takes up to 28 ns per character of the message
 * (measured on a 2-core virtual machine): 200 of them take up to 23 ms for 4 KiB, which leaves a machine of half the speed
 * below 50 ms (FIX-90).
 */
const MAX_SIZE = 200;
/**
 * The memory in bytes for the states of the lazy DFA. An expression that needs more runs as an NFA. With the 8 MiB of
 * `RE2JS.test`, the DFA computes a new state for each character of some expressions, which takes five times as long.
 */
const MAX_STATE_BYTES = 65_536;

const compiled = new WeakMap<MessageCondition, RE2Set>();
let engine: Engine | undefined;

/** Returns the rule that the expression violates; `null` if it is valid. */
export function patternProblem(value: string, flags?: string): string | null {
  try {
    const { RE2JS: engine } = loaded();
    const size = engine.compile(value, flagsOf(flags)).programSize();
    if (size <= MAX_SIZE) return null;
    return `has ${size} instructions; at most ${MAX_SIZE} are allowed. Repeat less, or split it by any_of.`;
  } catch (error) {
    const reason = (error as Error).message.replace('error parsing regexp: ', '');
    return `must be a regular expression in RE2's syntax, without lookaround and backreferences. Received: ${reason}.`;
  }
}

/** Matches the first 4 KiB of the message. Takes linear time for any expression (FIX-30). */
export function matchesMessage(condition: MessageCondition, message: string): boolean {
  let pattern = compiled.get(condition);
  if (!pattern) {
    pattern = compile(condition);
    compiled.set(condition, pattern);
  }
  return pattern.match(beginningOf(message)).length > 0;
}

function beginningOf(message: string): string {
  // UTF-8 needs at most three bytes per code unit, so the message fits.
  if (message.length * 3 <= MAX_BYTES) return message;
  const bytes = Buffer.from(message.slice(0, MAX_BYTES)).subarray(0, MAX_BYTES);
  // Decoded as part of a stream, so that a character at the cut is omitted.
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream: true });
}

/** Returns a set of one expression: only a set limits the memory of the DFA. */
function compile({ value, flags }: MessageCondition): RE2Set {
  const { RE2Set: Expressions } = loaded();
  const expressions = new Expressions(Expressions.UNANCHORED, flagsOf(flags), MAX_STATE_BYTES);
  expressions.add(value);
  expressions.compile();
  return expressions;
}

function flagsOf(flags = ''): number {
  const { RE2JS: engine } = loaded();
  const bits = { i: engine.CASE_INSENSITIVE, s: engine.DOTALL, m: engine.MULTILINE, u: 0 };
  return [...flags].reduce((sum, flag) => sum | bits[flag as keyof typeof bits], 0);
}

/** Loads the engine for the first plan with a condition on the message, because that takes 10 to 40 ms. */
function loaded(): Engine {
  engine ??= requireInstalled('re2js') as Engine;
  return engine;
}
