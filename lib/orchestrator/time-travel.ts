import { checkpointAt } from '../ledger/checkpoint-at.js';
import { type CheckpointStore } from '../ledger/checkpoint.store.js';
import { type Checkpoint } from '../ledger/checkpoint.js';
import { checkInput } from '../common/check-input.js';
import { assertId } from '../common/ids.js';
import { sha256 } from '../common/digests.js';
import { SessionConflictError, SessionNotFoundError } from '../ledger/session.errors.js';
import { isSameSession } from '../ledger/session.lifecycle.js';
import { type Session } from '../ledger/session.js';
import { type TurnStatus } from '../ledger/turn.js';
import { type CreateSessionInput } from '../session/session.inputs.js';
import { type SessionStore } from '../session/session-store.service.js';
import { type TurnService } from '../turn/turn.service.js';
import { type OrchestratorRegistry } from './orchestrator.registry.js';
import { ForkOptions, HistoryQuery, UndoOptions } from './time-travel.inputs.js';

/** An orchestrator's state in a session after a turn, an undo or a fork. */
export type HistoryEntry<State = Record<string, unknown>> = Pick<
  Checkpoint,
  'turnIndex' | 'lastRoute' | 'version' | 'savedAt' | 'turnId' | 'parent'
> & { readonly state: State };

/** The statuses of a fork that has changed nothing. */
const FAILED: readonly TurnStatus[] = ['failed', 'cancelled', 'superseded'];

/** The result of `OrchestratorHandle.undo`. */
export interface UndoResult {
  readonly sessionId: string;
  readonly turnIndex: number;
  readonly undone: string;
}

/** Implements history, undo and fork of an orchestrator's handle (BOT-25). */
export class TimeTravel {
  constructor(
    private readonly turns: TurnService,
    private readonly sessions: SessionStore,
    private readonly checkpoints: CheckpointStore,
    private readonly registry: OrchestratorRegistry,
  ) {}

  async history(orchestrator: string, sessionId: string, query: HistoryQuery): Promise<HistoryEntry[]> {
    assertId(sessionId, 'sessionId');
    const page = { ...checkInput(HistoryQuery, query, 'query') };
    return (await this.checkpoints.history(orchestrator, sessionId, page)).map(toEntry);
  }

  async undo(orchestrator: string, sessionId: string, options: UndoOptions): Promise<UndoResult> {
    assertId(sessionId, 'sessionId');
    const checked = checkInput(UndoOptions, options, 'options');
    this.registry.assertLog('undo');
    const command = { type: 'undo' } as const;
    const { turnIndex, data } = await this.turns.command(orchestrator, { ...checked, sessionId, command });
    return { sessionId, turnIndex, ...(data as unknown as Pick<UndoResult, 'undone'>) };
  }

  async fork(orchestrator: string, sessionId: string, options: ForkOptions): Promise<Session> {
    assertId(sessionId, 'sessionId');
    const { atTurn, newSessionId, userId, metadata, ...wait } = checkInput(ForkOptions, options, 'options');
    const source = await this.sessions.get(sessionId);
    if (!source) throw new SessionNotFoundError(sessionId);
    const { turnIndex, savedAt } = await checkpointAt(this.checkpoints, orchestrator, sessionId, atTurn);
    // The checkpoint may be that of another session that got the id meanwhile.
    const current = await this.sessions.get(sessionId);
    if (!current || !isSameSession(current, source)) throw new SessionNotFoundError(sessionId);
    const target = await this.sessionFor({
      userId: userId ?? source.userId,
      metadata: metadata ?? source.metadata,
      ...(newSessionId === undefined ? {} : { id: newSessionId }),
      ...(source.workspaceId === undefined ? {} : { workspaceId: source.workspaceId }),
    });
    const id = await this.forkId(orchestrator, sessionId, target.id, atTurn);
    const command = { type: 'fork', from: { sessionId, turnIndex, savedAt } } as const;
    const own = { sessionId: target.id, session: target, whenBusy: 'enqueue', command, id } as const;
    await this.turns.command(orchestrator, { ...wait, ...own });
    return (await this.sessions.get(target.id)) ?? target;
  }

  /**
   * Returns the id of the turn that forks. It comes from the arguments: the latest turn may differ when the call is repeated,
   * but the fork must be the same. A call after a failure gets another turn.
   */
  private async forkId(...fork: readonly (string | number | undefined)[]): Promise<string> {
    for (let failures = 0; ; failures += 1) {
      const id = sha256(JSON.stringify([...fork, failures])).slice(0, 32);
      const turn = await this.turns.get(id);
      if (!turn || !FAILED.includes(turn.status)) return id;
    }
  }

  /** Returns the session that a fork writes to. An earlier call of the same owner may have created it. */
  private async sessionFor(wanted: CreateSessionInput): Promise<Session> {
    try {
      return await this.sessions.create(wanted);
    } catch (error) {
      if (!SessionConflictError.isInstance(error) || wanted.id === undefined) throw error;
      const known = await this.sessions.get(wanted.id);
      if (known?.userId !== wanted.userId || known.workspaceId !== wanted.workspaceId) throw error;
      return known;
    }
  }
}

function toEntry(checkpoint: Checkpoint): HistoryEntry {
  const { turnIndex, state, lastRoute, version, savedAt, turnId, parent } = checkpoint;
  const turn = turnId === undefined ? {} : { turnId };
  return { turnIndex, state, lastRoute, version, savedAt, ...turn, ...(parent === undefined ? {} : { parent }) };
}
