import type { RE2JS } from 're2js';
import { requireInstalled } from '../common/load-peer.js';
import { type OrchestrationCondition } from './orchestration-config.js';

type MessageCondition = Extract<OrchestrationCondition, { type: 'message_matches' }>;

type Engine = typeof RE2JS;

/** The number of bytes of a message that expressions read, as UTF-8. */
const MAX_BYTES = 4096;
/**
 * The maximum number of instructions of a compiled expression. The time of a search is proportional to it and to the
 * length of the message.
 */
const MAX_SIZE = 500;

const compiled = new WeakMap<MessageCondition, RE2JS>();
let engine: Engine | undefined;

/** Returns the rule that the expression violates; `null` if it is valid. */
export function patternProblem(value: string, flags?: string): string | null {
  try {
    const size = compile(value, flags).programSize();
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
    pattern = compile(condition.value, condition.flags);
    compiled.set(condition, pattern);
  }
  return pattern.test(beginningOf(message));
}

function beginningOf(message: string): string {
  // UTF-8 needs at most three bytes per code unit, so the message fits.
  if (message.length * 3 <= MAX_BYTES) return message;
  const bytes = Buffer.from(message.slice(0, MAX_BYTES)).subarray(0, MAX_BYTES);
  // Decoded as part of a stream, so that a character at the cut is omitted.
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream: true });
}

function compile(value: string, flags = ''): RE2JS {
  const engine = loaded();
  const bits = { i: engine.CASE_INSENSITIVE, s: engine.DOTALL, m: engine.MULTILINE, u: 0 };
  return engine.compile(
    value,
    [...flags].reduce((sum, flag) => sum | bits[flag as keyof typeof bits], 0),
  );
}

/** Loads the engine for the first plan with a condition on the message, because that takes 10 to 40 ms. */
function loaded(): Engine {
  engine ??= (requireInstalled('re2js') as { RE2JS: Engine }).RE2JS;
  return engine;
}
