import { type Provider } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { SchedulerRegistry } from '@nestjs/schedule';
import { CheckpointStore } from '../ledger/checkpoint.store.js';
import { findProvider, provide, provideClass } from '../common/nest-providers.js';
import { SessionSweeper } from '../maintenance/session-sweeper.service.js';
import { SessionRecords } from '../records/session-records.service.js';
import { AffinityResolver, defaultAffinityResolver } from '../session/affinity-resolver.js';
import { SessionEvents } from '../session/session-events.js';
import { SessionStore } from '../session/session-store.service.js';
import { type SessionsAdapter } from '../ledger/sessions.adapter.js';
import { type SessionsSettings } from './sessions.settings.js';
import { OBSERVED_ADAPTER, SESSIONS_ADAPTER, SESSIONS_SETTINGS } from '../common/sessions.tokens.js';
import { Telemetry } from '../telemetry/telemetry.js';

/** Sessions, what is stored of them, and the sweep that ends them. */
export const SESSION_PROVIDERS: Provider[] = [
  provide(
    SessionStore,
    [OBSERVED_ADAPTER, SESSIONS_SETTINGS],
    (adapter: SessionsAdapter, settings: SessionsSettings) => new SessionStore(adapter.sessions, settings.sessions),
  ),
  provide(SessionEvents, [SessionStore], ({ events }: SessionStore) => events),
  provide(AffinityResolver, [SessionStore], defaultAffinityResolver),
  provide(CheckpointStore, [OBSERVED_ADAPTER], ({ checkpoints }: SessionsAdapter) => checkpoints),
  provideClass(SessionRecords, [SessionStore, SESSIONS_ADAPTER]),
  provide(SessionSweeper, [SessionStore, OBSERVED_ADAPTER, SESSIONS_SETTINGS, ModuleRef, Telemetry], sweeperOf),
];

function sweeperOf(
  sessions: SessionStore,
  adapter: SessionsAdapter,
  { sweep }: SessionsSettings,
  moduleRef: ModuleRef,
  telemetry: Telemetry,
): SessionSweeper {
  return new SessionSweeper(sessions, adapter, sweep, findProvider(moduleRef, SchedulerRegistry), telemetry);
}
