import { type Provider } from '@nestjs/common';
import { provide, provideClass } from '../common/nest-providers.js';
import { SessionStore } from '../session/session-store.service.js';
import { isAtomic } from '../ledger/session.store.js';
import { type SessionsAdapter } from '../ledger/sessions.adapter.js';
import { type ProcessRole } from './sessions.options.js';
import { type SessionsSettings } from './sessions.settings.js';
import { OBSERVED_ADAPTER, SESSIONS_ROLE, SESSIONS_SETTINGS, TURN_QUEUE } from '../common/sessions.tokens.js';
import { Telemetry } from '../telemetry/telemetry.js';
import { LaneBell } from '../turn/lane-bell.js';
import { LaneReconciler } from '../turn/lane-reconciler.service.js';
import { PassedTurns } from '../turn/passed-turns.js';
import { StoredEvents } from '../turn/stored-events.js';
import { TurnContexts } from '../turn/turn-contexts.js';
import { type TurnQueue } from '../ledger/turn-queue.js';
import { TurnRecovery } from '../turn/turn-recovery.js';
import { TurnRunner } from '../turn/turn-runner.js';
import { TurnRuntime } from '../turn/turn-runtime.js';
import { TurnService } from '../turn/turn.service.js';
import { TurnWorker } from '../turn/turn-worker.service.js';

/** Those who submit turns and those who run them, over one runtime. */
export const TURN_PROVIDERS: Provider[] = [
  provide(
    TurnContexts,
    [SESSIONS_ROLE, OBSERVED_ADAPTER],
    (role: ProcessRole, { turns, hints }: SessionsAdapter) => new TurnContexts(role !== 'submit', turns, hints),
  ),
  provide(
    TurnRuntime,
    [OBSERVED_ADAPTER, SESSIONS_SETTINGS, TURN_QUEUE, TurnRunner, TurnContexts, SessionStore, Telemetry],
    runtimeOf,
  ),
  provideClass(TurnWorker, [TurnRuntime]),
  provideClass(TurnService, [TurnRuntime, TurnWorker]),
  provideClass(LaneReconciler, [TurnRuntime]),
];

function runtimeOf(
  adapter: SessionsAdapter,
  settings: SessionsSettings,
  queue: TurnQueue,
  runner: TurnRunner,
  contexts: TurnContexts,
  sessions: SessionStore,
  telemetry: Telemetry,
): TurnRuntime {
  return {
    ledger: adapter.turns,
    hints: adapter.hints,
    events: adapter.events,
    stored: new StoredEvents(),
    queue,
    bell: new LaneBell(queue),
    recovery: new TurnRecovery(),
    passed: new PassedTurns(),
    runner,
    contexts,
    settings: settings.turns,
    telemetry,
    sessions,
    foreignSessions: !isAtomic(adapter.sessions),
  };
}
