import { setTimeout as delay } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { StoreUnavailableError } from '../common/sessions.error.js';
import { type SessionsAdapter } from '../ledger/sessions.adapter.js';
import { type SessionsSettings } from './sessions.settings.js';

/**
 * Opens the store. Retries during an outage, as `TypeOrmModule` does (DAY-06).
 * @throws StoreUnavailableError after the last attempt if its `reason` is `outage`, and at once for any other reason
 * @throws SessionsConfigurationError at once
 */
export async function openStore({ adapter, turns, storeAttempts }: SessionsSettings): Promise<SessionsAdapter> {
  const logger = new Logger('AgentSessions');
  const { count, delayMs } = storeAttempts;
  const maxValueBytes = Math.max(turns.maxStepBytes, turns.maxReplyBytes, turns.maxInputBytes);
  for (let attempt = 1; ; attempt += 1) {
    try {
      await adapter.init?.({ maxValueBytes });
      return adapter;
    } catch (error) {
      if (attempt >= count || !isOutage(error)) throw error;
      logger.error(`${error.message} This was attempt ${attempt} of ${count}. The next one follows in ${delayMs} ms.`);
      await delay(delayMs);
    }
  }
}

function isOutage(error: unknown): error is StoreUnavailableError {
  return StoreUnavailableError.isInstance(error) && error.reason === 'outage';
}
