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
  readonly logging: LogDetails;
}

/** Returns the log entry of the start, which shows an unintended store, queue or role at once (DAY-15). */
export function startSummary({ adapter, queue, role, orchestrators, controllers, logging }: StartedParts): string {
  const parts = {
    Store: adapter.label ?? adapter.system ?? 'custom',
    Queue: queue.label ?? 'custom',
    Role: role,
    Orchestrators: listed(orchestrators),
    Controllers: listed(controllers),
    Logs: `messages ${shown(logging.messages)}, ids ${shown(logging.ids)}`,
  };
  return Object.entries(parts)
    .map(([name, value]) => `${name}: ${value}.`)
    .join(' ');
}

function shown(isShown: boolean): string {
  return isShown ? 'shown' : 'hidden';
}

function listed(names: readonly string[]): string {
  return names.length === 0 ? 'none' : names.join(', ');
}
