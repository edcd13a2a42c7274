import { type Provider } from '@nestjs/common';
import { provide } from '../common/nest-providers.js';
import { silentQueue } from '../queue/in-process/silent-queue.js';
import { type SessionsAdapter } from '../ledger/sessions.adapter.js';
import { type ProcessRole } from './sessions.options.js';
import { resolveOptions, type SessionsSettings } from './sessions.settings.js';
import {
  OBSERVED_ADAPTER,
  SESSIONS_ADAPTER,
  SESSIONS_OPTIONS,
  SESSIONS_ROLE,
  SESSIONS_SETTINGS,
  TURN_QUEUE,
} from '../common/sessions.tokens.js';
import { observedAdapter } from '../telemetry/observed-adapter.js';
import { loadTelemetry } from '../telemetry/open-telemetry.js';
import { Telemetry } from '../telemetry/telemetry.js';
import { type TurnQueue } from '../ledger/turn-queue.js';

/** What all the others stand on: the settings, the store, the queue. */
export const FOUNDATION_PROVIDERS: Provider[] = [
  provide(SESSIONS_SETTINGS, [SESSIONS_OPTIONS], resolveOptions),
  provide(SESSIONS_ADAPTER, [SESSIONS_SETTINGS], connected),
  provide(Telemetry, [SESSIONS_SETTINGS], telemetryOf),
  provide(OBSERVED_ADAPTER, [SESSIONS_ADAPTER, Telemetry], observedAdapter),
  provide(TURN_QUEUE, [SESSIONS_SETTINGS, SESSIONS_ROLE], queueOf),
];

async function connected({ adapter }: SessionsSettings): Promise<SessionsAdapter> {
  await adapter.init?.();
  return adapter;
}

function telemetryOf({ telemetry }: SessionsSettings): Telemetry | Promise<Telemetry> {
  return telemetry ? loadTelemetry() : new Telemetry();
}

function queueOf({ queue, queueByDefault }: SessionsSettings, role: ProcessRole): TurnQueue {
  return queueByDefault && role === 'submit' ? silentQueue : queue;
}
