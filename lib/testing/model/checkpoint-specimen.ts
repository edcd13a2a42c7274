import { type KeepCheckpoints } from '../../ledger/checkpoint.store.js';
import { type Checkpoint, type NewCheckpoint } from '../../ledger/checkpoint.js';
import { type MessageSpan } from '../../ledger/message.js';
import { type AtomicSessionStoreAdapter } from '../../ledger/session.store.js';
import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { ClientDriver } from './client-driver.js';
import { action, type Specimen } from './specimen.js';
import { TimedModel } from './timed-model.js';

const ORCHESTRATORS = ['desk', 'sales'] as const;
type Orchestrator = (typeof ORCHESTRATORS)[number];

interface Of {
  readonly orchestrator: Orchestrator;
}

type CheckpointCall =
  | ({ readonly type: 'load'; readonly turnIndex: number | null } & Of)
  | ({ readonly type: 'history'; readonly before: number | null; readonly limit: number } & Of)
  | ({ readonly type: 'prune'; readonly keep: number } & Of)
  | ({ readonly type: 'list' | 'delete' } & Of)
  | { readonly type: 'deleteSession' | 'eraseSession' };

type CheckpointAction =
  /** `off` is the error of the index. */
  ({ readonly type: 'append'; readonly off: number; readonly keep: KeepCheckpoints } & Of) | CheckpointCall;

type CheckpointOperation = Appending | CheckpointCall;

interface Appending extends Of {
  readonly type: 'append';
  readonly turnIndex: number;
  readonly note: string;
  readonly keep: KeepCheckpoints;
}

interface Shown {
  readonly turnIndex: number;
  readonly note: unknown;
  readonly undone: unknown;
  readonly savedAt: number;
}

/** The checkpoints of a session (CheckpointStore). */
export const CHECKPOINTS: Specimen<CheckpointAction, CheckpointOperation> = {
  actions(fc) {
    const orchestrator = fc.constantFrom(...ORCHESTRATORS);
    const off = fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, fc.constantFrom(-1, 1));
    const keep = fc.integer({ min: 1, max: 4 });
    const index = fc.option(fc.nat(8));
    return fc.oneof(
      {
        weight: 14,
        arbitrary: action(fc, 'append', {
          orchestrator,
          off,
          keep: fc.oneof({ weight: 3, arbitrary: fc.constant<'all'>('all') }, keep),
        }),
      },
      { weight: 3, arbitrary: action(fc, 'load', { orchestrator, turnIndex: index }) },
      { weight: 3, arbitrary: action(fc, 'history', { orchestrator, before: index, limit: fc.nat(4) }) },
      { weight: 3, arbitrary: action(fc, 'prune', { orchestrator, keep }) },
      { weight: 2, arbitrary: action(fc, 'list', { orchestrator }) },
      { weight: 1, arbitrary: action(fc, 'delete', { orchestrator }) },
      { weight: 1, arbitrary: fc.record({ type: fc.constantFrom('deleteSession', 'deleteSession', 'eraseSession') }) },
    );
  },
  reads: ORCHESTRATORS.flatMap((orchestrator) => [
    { type: 'history', orchestrator, before: null, limit: 100 },
    { type: 'load', orchestrator, turnIndex: null },
  ]),
  model: (durations) => new CheckpointModel(durations),
  open: (context) => CheckpointDriver.open(context),
};

class CheckpointModel extends TimedModel<CheckpointOperation> {
  /** The stored checkpoints in order. */
  kept: Record<Orchestrator, Shown[]> = { desk: [], sales: [] };
  erased = false;

  apply(operation: CheckpointOperation, seen: unknown): unknown {
    switch (operation.type) {
      case 'append':
        return this.append(operation, seen as Partial<Shown>);
      case 'load': {
        const kept = this.kept[operation.orchestrator];
        const wanted = operation.turnIndex ?? kept.at(-1)?.turnIndex;
        return kept.find(({ turnIndex }) => turnIndex === wanted) ?? null;
      }
      case 'history': {
        const { orchestrator, before, limit } = operation;
        const older = this.kept[orchestrator].filter(({ turnIndex }) => turnIndex < (before ?? Infinity));
        return older.reverse().slice(0, limit);
      }
      case 'list':
        return this.kept[operation.orchestrator].length > 0;
      case 'prune':
        return this.prune(operation.orchestrator, operation.keep);
      case 'delete':
        this.kept[operation.orchestrator] = [];
        return null;
      case 'deleteSession':
      case 'eraseSession':
        this.kept = { desk: [], sales: [] };
        this.erased ||= operation.type === 'eraseSession';
        return null;
    }
  }

  private append({ orchestrator, turnIndex, note, keep }: Appending, seen: Partial<Shown>): unknown {
    if (this.erased) return 'SESSION_NOT_FOUND';
    const next = (this.kept[orchestrator].at(-1)?.turnIndex ?? -1) + 1;
    if (turnIndex !== next) return 'CHECKPOINT_CONFLICT';
    const undone = turnIndex % 2 === 0 ? null : takenBack(turnIndex);
    const added = { turnIndex, note, undone, savedAt: this.stamp(this.now, seen.savedAt) };
    this.kept[orchestrator].push(added);
    if (keep !== 'all') this.prune(orchestrator, keep);
    return added;
  }

  private prune(orchestrator: Orchestrator, keep: number): number {
    const before = this.kept[orchestrator].length;
    this.kept[orchestrator] = this.kept[orchestrator].slice(-keep);
    return before - this.kept[orchestrator].length;
  }
}

class CheckpointDriver extends ClientDriver<CheckpointAction, CheckpointOperation> {
  /** The latest indices that the clients have read. */
  private readonly latest: Record<Orchestrator, number> = { desk: -1, sales: -1 };

  plan(action: CheckpointAction): CheckpointOperation {
    if (action.type !== 'append') return action;
    const { off, ...rest } = action;
    return { ...rest, turnIndex: this.latest[action.orchestrator] + 1 + off, note: this.mint('note') };
  }

  protected async call({ checkpoints, sessions }: SessionsAdapter, operation: CheckpointOperation): Promise<unknown> {
    const { id } = this;
    switch (operation.type) {
      case 'append': {
        const added = await checkpoints.append(this.checkpoint(operation), operation.keep);
        this.latest[operation.orchestrator] = added.turnIndex;
        return this.shown(added);
      }
      case 'load': {
        const { orchestrator, turnIndex } = operation;
        const found = await checkpoints.load(orchestrator, id, turnIndex ?? undefined);
        if (turnIndex === null) this.latest[orchestrator] = found?.turnIndex ?? -1;
        return found && this.shown(found);
      }
      case 'history': {
        const { orchestrator, before, limit } = operation;
        const found = await checkpoints.history(orchestrator, id, { limit, ...(before === null ? {} : { before }) });
        return found.map((checkpoint) => this.shown(checkpoint));
      }
      case 'list':
        return (await checkpoints.list(operation.orchestrator, { prefix: id })).includes(id);
      case 'prune':
        return checkpoints.prune(operation.orchestrator, id, operation.keep);
      case 'delete':
        await checkpoints.delete(operation.orchestrator, id);
        return null;
      case 'deleteSession':
        await sessions.delete(id);
        return null;
      case 'eraseSession':
        await (sessions as AtomicSessionStoreAdapter).erase(id);
        return null;
    }
  }

  private checkpoint({ orchestrator, turnIndex, note }: Appending): NewCheckpoint {
    const definition = { orchestrator: orchestrator, lastRoute: [], signature: 'signature', version: '1' };
    const undone = turnIndex % 2 === 0 ? {} : { undone: takenBack(turnIndex) };
    return { ...definition, sessionId: this.id, turnIndex, state: { note }, summarizedThrough: 0, ...undone };
  }

  private shown({ turnIndex, state, savedAt, undone }: Checkpoint): Shown {
    return { turnIndex, note: state.note, undone: undone ?? null, savedAt: this.since(savedAt) };
  }
}

function takenBack(turnIndex: number): readonly MessageSpan[] {
  return [{ from: turnIndex, through: 2 * turnIndex }];
}
