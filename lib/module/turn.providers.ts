import { type Provider } from '@nestjs/common';
import { provide, provideClass } from '../common/nest-providers.js';
import { SessionStore } from '../session/session-store.service.js';
import { isAtomic } from '../ledger/session.store.js';
import { type SessionsAdapter } from '../ledger/sessions.adapter.js';
import { type ProcessRole } from './sessions.options.js';
import { type SessionsSettings } from './sessions.settings.js';
import { OBSERVED_ADAPTER, SESSIONS_ROLE, SESSIONS_SETTINGS, TURN_QUEUE } from '../common/sessions.tokens.js';
import { Telemetry } from '../telemetry/telemetry.js';
import { LaneNotifier } from '../turn/lane-notifier.js';
import { LaneReconciler } from '../turn/lane-reconciler.service.js';
import { VersionHandoff } from '../turn/version-handoff.js';
import { LocalEvents } from '../turn/local-events.js';
import { OpenResponses } from '../turn/open-responses.js';
import { StartPhase } from '../turn/start-phase.js';
import { StoreWatch } from '../turn/store-watch.js';
import { TurnContexts } from '../turn/turn-contexts.js';
import { type TurnQueue } from '../ledger/turn-queue.js';
import { TurnRecovery } from '../turn/turn-recovery.js';
import { TurnRunner } from '../turn/turn-runner.js';
import { TurnDependencies } from '../turn/turn-dependencies.js';
import { TurnService } from '../turn/turn.service.js';
import { TurnWorker } from '../turn/turn-worker.service.js';

/** The services that submit turns and those that run them, with shared dependencies. */
export const TURN_PROVIDERS: Provider[] = [
  provide(
    TurnContexts,
    [SESSIONS_ROLE, OBSERVED_ADAPTER],
    (role: ProcessRole, { turns, changes }: SessionsAdapter) => new TurnContexts(role !== 'submit', turns, changes),
  ),
  provideClass(OpenResponses, []),
  provide(StartPhase, [SESSIONS_ROLE], (role: ProcessRole) => new StartPhase(role !== 'submit')),
  provide(
    TurnDependencies,
    [
      OBSERVED_ADAPTER,
      SESSIONS_SETTINGS,
      TURN_QUEUE,
      TurnRunner,
      TurnContexts,
      SessionStore,
      Telemetry,
      StartPhase,
      OpenResponses,
    ],
    dependenciesOf,
  ),
  provideClass(TurnWorker, [TurnDependencies]),
  provideClass(TurnService, [TurnDependencies, TurnWorker]),
  provideClass(LaneReconciler, [TurnDependencies]),
];

function dependenciesOf(
  adapter: SessionsAdapter,
  settings: SessionsSettings,
  queue: TurnQueue,
  runner: TurnRunner,
  contexts: TurnContexts,
  sessions: SessionStore,
  telemetry: Telemetry,
  start: StartPhase,
  responses: OpenResponses,
): TurnDependencies {
  return {
    ledger: adapter.turns,
    changes: adapter.changes,
    storeWatch: new StoreWatch(adapter),
    events: adapter.events,
    localEvents: new LocalEvents(),
    responses,
    queue,
    notifier: new LaneNotifier(queue),
    recovery: new TurnRecovery(),
    versionHandoff: new VersionHandoff(settings.turns, adapter.shared),
    start,
    runner,
    contexts,
    settings: settings.turns,
    telemetry,
    sessions,
    foreignSessions: !isAtomic(adapter.sessions),
  };
}
