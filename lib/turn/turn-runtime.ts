import { type SessionStore } from '../session/session-store.service.js';
import { type Telemetry } from '../telemetry/telemetry.js';
import { type LaneBell } from './lane-bell.js';
import { type PassedTurns } from './passed-turns.js';
import { type StoredEvents } from './stored-events.js';
import { type TurnContexts } from './turn-contexts.js';
import { type TurnEventLog } from '../ledger/turn-event-log.js';
import { type TurnQueue } from '../ledger/turn-queue.js';
import { type TurnRecovery } from './turn-recovery.js';
import { type TurnRunner } from './turn-runner.js';
import { type TurnSettings } from './turn.settings.js';
import { type TurnHints, type TurnLedger } from '../ledger/turn.store.js';

/** What those who submit and those who run turns have in common. */
export abstract class TurnRuntime {
  abstract readonly ledger: TurnLedger;
  abstract readonly hints: TurnHints;
  abstract readonly events: TurnEventLog;
  abstract readonly stored: StoredEvents;
  abstract readonly queue: TurnQueue;
  abstract readonly bell: LaneBell;
  abstract readonly recovery: TurnRecovery;
  abstract readonly passed: PassedTurns;
  abstract readonly runner: TurnRunner;
  abstract readonly contexts: TurnContexts;
  abstract readonly settings: TurnSettings;
  abstract readonly telemetry: Telemetry;
  abstract readonly sessions: SessionStore;
  /** Sessions live in another store than turns: the ledger then cannot check or touch them (SES-15). */
  abstract readonly foreignSessions: boolean;
}
