import { SessionsConfigurationError } from '../../common/sessions.error.js';
import { bullmqMessages } from './bullmq.messages.js';

/** The parts of ioredis options, of a client, and of a cluster's client that set how integers are read. */
interface MaybeStringNumbers {
  readonly stringNumbers?: unknown;
  readonly options?: { readonly stringNumbers?: unknown; readonly redisOptions?: { readonly stringNumbers?: unknown } };
}

/**
 * Rejects a connection that reads integers as strings: BullMQ would deliver every notification again and again (FIX-66).
 * @throws SessionsConfigurationError
 */
export function assertReadsNumbers(connection: unknown, name: string): void {
  const { stringNumbers, options } = (connection ?? {}) as MaybeStringNumbers;
  const settings = [stringNumbers, options?.stringNumbers, options?.redisOptions?.stringNumbers];
  if (!settings.includes(true)) return;
  throw new SessionsConfigurationError(bullmqMessages.stringNumbers(name));
}

/** Returns a job's data. With a parser of the application, `pg` returns JSON as text (FIX-66). */
export function jobData<Data extends object>(data: Data | string): Data {
  return typeof data === 'string' ? (JSON.parse(data) as Data) : data;
}
