import { isIntegerWithin } from '../common/check-input.js';
import { isPlainObject } from '../common/json.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { type WindowShape } from './window.js';

const DEFAULT_WINDOW = 200;
const MAX_MESSAGES = 10_000;
const MAX_TOKENS = 100_000_000;

/** What the route and the intents are given of the conversation (BOT-40); a shape alone is for both. */
export type HistoryWindowOption = WindowShape | HistoryWindow;

/** What functions see of the conversation: the route by `router`, intents and `evaluate` by `agents` (BOT-40). */
export interface HistoryWindow {
  /** What the route sees. Default: as `agents`. */
  readonly router?: WindowShape;
  /** What intents and `evaluate` see. Default 200 messages. */
  readonly agents?: WindowShape;
  /** How many messages are read for a window that is not a number. Default 200. */
  readonly loadLimit?: number;
}

/** @throws SessionsConfigurationError naming the orchestrator and the field that is wrong */
export function toHistoryWindow(orchestrator: string, option: HistoryWindowOption = {}): Required<HistoryWindow> {
  const given: unknown = isWindows(option) ? option : { agents: option };
  const { agents = DEFAULT_WINDOW, router = agents, loadLimit = DEFAULT_WINDOW } = given as HistoryWindow;
  const check = (ok: boolean, field: string, value: unknown, rule: string): void => {
    if (ok) return;
    const shown = typeof value === 'number' ? String(value) : JSON.stringify(value);
    throw new SessionsConfigurationError(
      `Orchestrator ${orchestrator}: historyWindow${field} is ${shown}; it must be ${rule}.`,
    );
  };
  for (const field of Object.keys(given as object)) {
    check(['router', 'agents', 'loadLimit'].includes(field), '', option, 'a window, or { router, agents, loadLimit }');
  }
  check(isIntegerWithin(loadLimit, 1, MAX_MESSAGES), '.loadLimit', loadLimit, `an integer from 1 to ${MAX_MESSAGES}`);
  for (const [role, shape] of Object.entries({ agents, router })) {
    const field = `.${role}`;
    if (isTokenWindow(shape)) {
      check(
        isIntegerWithin(shape.maxTokens, 1, MAX_TOKENS),
        `${field}.maxTokens`,
        shape.maxTokens,
        'an integer of 1 or more',
      );
    } else if (typeof shape !== 'function') {
      const rule = `an integer from 0 to ${MAX_MESSAGES}, { maxTokens }, or a function of the conversation`;
      check(isIntegerWithin(shape, 0, MAX_MESSAGES), field, shape, rule);
    }
  }
  return { router, agents, loadLimit };
}

/** How many messages must be read for both. */
export function messagesToLoad({ router, agents, loadLimit }: Required<HistoryWindow>): number {
  return Math.max(...[router, agents].map((shape) => (typeof shape === 'number' ? shape : loadLimit)));
}

/** What of a window is the orchestrator's structure (BOT-22): its kind, not its size. */
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
