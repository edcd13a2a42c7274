import { type Provider } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { SchedulerRegistry } from '@nestjs/schedule';
import { findProvider, provide, provideClass } from '../common/nest-providers.js';
import { OBSERVED_ADAPTER, SESSIONS_ADAPTER, SESSIONS_SETTINGS, BUILT_IN_STATE } from '../common/sessions.tokens.js';
import { ConversationCompaction } from '../conversation/conversation-compaction.service.js';
import { CheckpointStore } from '../ledger/checkpoint.store.js';
import { type SessionsAdapter } from '../ledger/sessions.adapter.js';
import { SessionSweeper } from '../maintenance/session-sweeper.service.js';
import { SessionRecords } from '../records/session-records.service.js';
import { AffinityResolver, defaultAffinityResolver } from '../session/affinity-resolver.js';
import { SessionEvents } from '../session/session-events.js';
import { SessionStore } from '../session/session-store.service.js';
import { builtInModules, builtInState } from '../state/built-in-modules.js';
import { ownedLog, ownedState } from '../state/owned-state.js';
import { type BuiltInState, SessionStateService } from '../state/session-state.service.js';
import { StateModules } from '../state/state-modules.js';
import { Telemetry } from '../telemetry/telemetry.js';
import { knownSession, ownSession } from '../turn/running-turn.js';
import { type SessionsSettings } from './sessions.settings.js';

/** Sessions, their records, and the sweep. */
export const SESSION_PROVIDERS: Provider[] = [
  provide(
    SessionStore,
    [OBSERVED_ADAPTER, SESSIONS_SETTINGS],
    (adapter: SessionsAdapter, settings: SessionsSettings) =>
      new SessionStore(adapter.sessions, settings.sessions, new SessionEvents(), ownSession(adapter.turns)),
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

function ownedStores(stores: SessionsAdapter, sessions: SessionStore): Parameters<typeof builtInState>[0] {
  const known = knownSession(stores.turns, sessions);
  return { conversations: ownedLog(stores, known), turns: stores.turns, state: ownedState(stores, known) };
}

/** State modules, and the service for all of them. */
export const STATE_PROVIDERS: Provider[] = [
  provide(
    BUILT_IN_STATE,
    [OBSERVED_ADAPTER, SESSIONS_SETTINGS, SessionStore],
    (stores: SessionsAdapter, { state }: SessionsSettings, sessions: SessionStore) =>
      builtInState(ownedStores(stores, sessions), state),
  ),
  provide(
    StateModules,
    [OBSERVED_ADAPTER, BUILT_IN_STATE, ConversationCompaction, SESSIONS_SETTINGS],
    (stores: SessionsAdapter, builtIn: BuiltInState, compaction: ConversationCompaction, { state }: SessionsSettings) =>
      new StateModules(builtInModules(stores, builtIn, compaction), state.hookTimeoutMs),
  ),
  provide(
    SessionStateService,
    [OBSERVED_ADAPTER, SESSIONS_SETTINGS, BUILT_IN_STATE, StateModules],
    (stores: SessionsAdapter, { state }: SessionsSettings, builtIn: BuiltInState, modules: StateModules) =>
      new SessionStateService({ stores, modules, builtIn, redact: state.redact }),
  ),
];
