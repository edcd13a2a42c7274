import { type LogDetails } from '../common/log-details.js';
import { type SessionsAdapter } from '../ledger/sessions.adapter.js';
import { type TurnQueue } from '../ledger/turn-queue.js';
import { type ProcessRole } from './sessions.options.js';

/** The parts that this process runs with. */
export interface StartedParts {
  readonly adapter: Pick<SessionsAdapter, 'label' | 'system'>;
  readonly queue: Pick<TurnQueue, 'label'>;
  readonly role: ProcessRole;
  readonly orchestrators: readonly string[];
  /** Each with its path. */
  readonly controllers: readonly string[];
  /** Milliseconds without activity after which a session counts as suspended. */
  readonly ttlMs: number;
  /** Milliseconds after its creation at which a session ends. */
  readonly maxLifetimeMs?: number;
  readonly logging: LogDetails;
}

/** The seconds of each unit. */
const UNITS = [
  [86_400, 'days'],
  [3600, 'h'],
  [60, 'min'],
] as const;

/** Returns the log entry of the start, which shows an unintended store, queue, role or unit of time at once (DAY-15). */
export function startSummary(parts: StartedParts): string {
  const { adapter, queue, role, orchestrators, controllers, ttlMs, maxLifetimeMs, logging } = parts;
  const entries = {
    Store: adapter.label ?? adapter.system ?? 'custom',
    Queue: queue.label ?? 'custom',
    Role: role,
    Orchestrators: listed(orchestrators),
    Controllers: listed(controllers),
    'Session TTL': duration(ttlMs) + (maxLifetimeMs === undefined ? '' : `, at most ${duration(maxLifetimeMs)}`),
    Logs: `messages ${shown(logging.messages)}, ids ${shown(logging.ids)}`,
  };
  return Object.entries(entries)
    .map(([name, value]) => `${name}: ${value}.`)
    .join(' ');
}

function shown(isShown: boolean): string {
  return isShown ? 'shown' : 'hidden';
}

/** Formats a duration in the largest unit that fits at least twice. */
function duration(ms: number): string {
  const seconds = ms / 1000;
  const [size, unit] = UNITS.find(([each]) => seconds >= 2 * each) ?? [1, 's'];
  return `${Number((seconds / size).toFixed(1))} ${unit}`;
}

function listed(names: readonly string[]): string {
  return names.length === 0 ? 'none' : names.join(', ');
}
