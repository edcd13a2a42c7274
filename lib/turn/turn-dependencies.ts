import { type SessionStore } from '../session/session-store.service.js';
import { type Telemetry } from '../telemetry/telemetry.js';
import { type LaneNotifier } from './lane-notifier.js';
import { type VersionHandoff } from './version-handoff.js';
import { type StartPhase } from './start-phase.js';
import { type LocalEvents } from './local-events.js';
import { type OpenResponses } from './open-responses.js';
import { type StoreWatch } from './store-watch.js';
import { type TurnContexts } from './turn-contexts.js';
import { type TurnEventLog } from '../ledger/turn-event-log.js';
import { type TurnQueue } from '../ledger/turn-queue.js';
import { type TurnRecovery } from './turn-recovery.js';
import { type TurnRunner } from './turn-runner.js';
import { type TurnSettings } from './turn.settings.js';
import { type TurnChanges, type TurnLedger } from '../ledger/turn.store.js';

/** The parts that accepting, running and recovering turns share; one instance per module. */
export abstract class TurnDependencies {
  abstract readonly ledger: TurnLedger;
  abstract readonly changes: TurnChanges;
  abstract readonly storeWatch: StoreWatch;
  abstract readonly events: TurnEventLog;
  abstract readonly localEvents: LocalEvents;
  abstract readonly responses: OpenResponses;
  abstract readonly queue: TurnQueue;
  abstract readonly notifier: LaneNotifier;
  abstract readonly recovery: TurnRecovery;
  abstract readonly versionHandoff: VersionHandoff;
  abstract readonly start: StartPhase;
  abstract readonly runner: TurnRunner;
  abstract readonly contexts: TurnContexts;
  abstract readonly settings: TurnSettings;
  abstract readonly telemetry: Telemetry;
  abstract readonly sessions: SessionStore;
  /** True if sessions are in another store than turns: the ledger then cannot check or touch them (SES-15). */
  abstract readonly foreignSessions: boolean;
}
