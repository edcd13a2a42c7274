import { isIntegerWithin } from '../common/check-input.js';
import { isPlainObject } from '../common/json.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { type WindowShape } from './window.js';

const DEFAULT_WINDOW = 200;
const MAX_MESSAGES = 10_000;
const MAX_TOKENS = 100_000_000;

/** The part of the conversation that the route and the intents receive (BOT-40). A single shape applies to both. */
export type HistoryWindowOption = WindowShape | HistoryWindow;

/**
 * The part of the conversation that functions receive: `router` for the route, `agents` for intents and `evaluate`
 * (BOT-40).
 */
export interface HistoryWindow {
  /** The window of the route. Default: same as `agents`. */
  readonly router?: WindowShape;
  /** The window of intents and `evaluate`. Default 200 messages. */
  readonly agents?: WindowShape;
  /** The number of messages to read for a window that is not a number. Default 200. */
  readonly loadLimit?: number;
}

/** @throws SessionsConfigurationError with the orchestrator and the invalid field */
export function toHistoryWindow(orchestrator: string, option: HistoryWindowOption = {}): Required<HistoryWindow> {
  const given: unknown = isWindows(option) ? option : { agents: option };
  const { agents = DEFAULT_WINDOW, router = agents, loadLimit = DEFAULT_WINDOW } = given as HistoryWindow;
  const check = (ok: boolean, field: string, value: unknown, rule: string): void => {
    if (ok) return;
    const shown = typeof value === 'number' ? String(value) : JSON.stringify(value);
    throw new SessionsConfigurationError(
      `Orchestrator ${orchestrator}: historyWindow${field} ${rule} Received: ${shown}.`,
    );
  };
  for (const field of Object.keys(given as object)) {
    check(
      ['router', 'agents', 'loadLimit'].includes(field),
      '',
      option,
      'must be a window, or { router, agents, loadLimit }.',
    );
  }
  check(
    isIntegerWithin(loadLimit, 1, MAX_MESSAGES),
    '.loadLimit',
    loadLimit,
    `must be an integer from 1 to ${MAX_MESSAGES}.`,
  );
  for (const [role, shape] of Object.entries({ agents, router })) {
    const field = `.${role}`;
    if (isTokenWindow(shape)) {
      check(
        isIntegerWithin(shape.maxTokens, 1, MAX_TOKENS),
        `${field}.maxTokens`,
        shape.maxTokens,
        'must be an integer of 1 or more.',
      );
    } else if (typeof shape !== 'function') {
      const rule = `must be an integer from 0 to ${MAX_MESSAGES}, { maxTokens }, or a function that takes the conversation.`;
      check(isIntegerWithin(shape, 0, MAX_MESSAGES), field, shape, rule);
    }
  }
  return { router, agents, loadLimit };
}

/** Returns how many messages both windows need. */
export function messagesToLoad({ router, agents, loadLimit }: Required<HistoryWindow>): number {
  return Math.max(...[router, agents].map((shape) => (typeof shape === 'number' ? shape : loadLimit)));
}

/** Returns the part of a window that belongs to the orchestrator's structure (BOT-22): its kind, not its size. */
export function shapeOf(shape: WindowShape): 'messages' | 'tokens' | 'function' {
  if (typeof shape === 'number') return 'messages';
  return typeof shape === 'function' ? 'function' : 'tokens';
}

function isWindows(option: HistoryWindowOption): option is HistoryWindow {
  return isPlainObject(option) && !('maxTokens' in option);
}

function isTokenWindow(shape: unknown): shape is { readonly maxTokens: number } {
  return isPlainObject(shape) && Object.keys(shape).join() === 'maxTokens';
}
