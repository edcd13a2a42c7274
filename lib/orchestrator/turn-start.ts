import { type JsonObject } from '../common/json.js';
import { type Checkpoint } from '../ledger/checkpoint.js';
import { SessionNotFoundError } from '../ledger/session.errors.js';
import { type Session } from '../ledger/session.js';
import { type ClaimedTurn } from '../ledger/turn.store.js';
import { type SessionStore } from '../session/session-store.service.js';
import { findState } from './find-state.js';
import { type OrchestratorEventBody } from './orchestrator-events.js';
import { type OrchestratorDefinition } from './orchestrator.js';
import { logMissingKeys } from './state-advice.js';
import { migrateState, type StateMigration } from './state-migrations.js';

/** Loads what a turn starts with: its session, and the orchestrator's state after drift checks and migrations. */
export class TurnStart {
  /** The versions that the state was migrated through, the stored one first; empty without a migration. */
  migrated: readonly string[] = [];
  private found: Session | Promise<Session> | undefined;

  constructor(
    private readonly definition: OrchestratorDefinition,
    private readonly claimed: ClaimedTurn,
    private readonly sessions: SessionStore,
    private readonly tell: (event: OrchestratorEventBody) => void,
  ) {}

  get turnIndex(): number {
    const { checkpoint } = this.claimed;
    return checkpoint ? checkpoint.turnIndex + 1 : 0;
  }

  /**
   * Loads the session at the first call. Returns a promise only if it is in another store than the turn.
   * @throws SessionNotFoundError
   */
  session(): Session | Promise<Session> {
    const { session } = this.claimed;
    this.found ??= session ? this.loaded(session) : this.foreignSession();
    return this.found;
  }

  /**
   * Returns a promise only if the state is migrated. @param checkpoint the one to start from; `null` for the initial
   * state
   */
  state(checkpoint: Checkpoint | null): JsonObject | Promise<JsonObject> {
    const { state, drifted, path } = findState(this.definition, { turn: this.claimed.turn, checkpoint });
    if (path.length > 0) return this.migrate(state, path);
    if (checkpoint) logMissingKeys(this.definition, state, checkpoint.version);
    this.tell({ type: 'drift-checked', drifted, migrated: [] });
    return state;
  }

  private async foreignSession(): Promise<Session> {
    const { sessionId } = this.claimed.turn;
    const session = await this.sessions.get(sessionId);
    if (!session) throw new SessionNotFoundError(sessionId);
    // Copy it: the turn freezes its session, but the object belongs to the adapter.
    return this.loaded(structuredClone(session));
  }

  private loaded(session: Session): Session {
    this.tell({ type: 'session-loaded', session, turnIndex: this.turnIndex });
    return session;
  }

  private async migrate(state: JsonObject, path: readonly StateMigration[]): Promise<JsonObject> {
    const migrated = await migrateState(path, state);
    this.migrated = [path[0].from, ...path.map(({ to }) => to)];
    this.tell({ type: 'drift-checked', drifted: true, migrated: this.migrated });
    return migrated;
  }
}
