import {
  type Checkpoint,
  CheckpointConflictError,
  type CheckpointStore,
  type KeepCheckpoints,
  type NewCheckpoint,
  SessionNotFoundError,
} from 'nestjs-agent-sessions';
import { type Store } from './store.js';

export const checkpointsPort = (store: Store): CheckpointStore => ({
  load: (orchestrator, sessionId, turnIndex) =>
    store.read(() =>
      turnIndex === undefined
        ? (latestCheckpoint(store, orchestrator, sessionId) ?? null)
        : (store.checkpoints.get(orchestrator, sessionId, turnIndex) ?? null),
    ),
  append: (checkpoint, keep) => store.commit(() => appendCheckpoint(store, checkpoint, keep)),
  history: (orchestrator, sessionId, page) =>
    store.read(() => history(store, orchestrator, sessionId, page?.before, page?.limit)),
  list: (orchestrator, page) => store.read(() => sessionsWith(store, orchestrator, page)),
  orchestrators: (sessionId) => store.read(() => orchestratorsOf(store, sessionId)),
  prune: (orchestrator, sessionId, keep) => store.commit(() => prune(store, orchestrator, sessionId, keep)),
  delete: (orchestrator, sessionId) => store.commit(() => void prune(store, orchestrator, sessionId, 0)),
});

export function latestCheckpoint(store: Store, orchestrator: string, sessionId: string): Checkpoint | undefined {
  return store.checkpoints.first('latest', [orchestrator, sessionId]);
}

export function appendCheckpoint(store: Store, checkpoint: NewCheckpoint, keep: KeepCheckpoints): Checkpoint {
  const { orchestrator, sessionId, turnIndex } = checkpoint;
  if (store.erased.get(sessionId)) throw new SessionNotFoundError(sessionId);
  const next = (latestCheckpoint(store, orchestrator, sessionId)?.turnIndex ?? -1) + 1;
  if (turnIndex !== next) throw new CheckpointConflictError(orchestrator, sessionId, turnIndex);
  const stored = store.checkpoints.put({ ...checkpoint, savedAt: store.time() });
  if (keep !== 'all') prune(store, orchestrator, sessionId, keep);
  return stored;
}

/** Indexes have no gaps, so what goes begins right below what is kept. */
function prune(store: Store, orchestrator: string, sessionId: string, keep: number): number {
  const latest = latestCheckpoint(store, orchestrator, sessionId);
  if (!latest) return 0;
  let pruned = 0;
  const from = keep - latest.turnIndex;
  for (const old of store.checkpoints.by('latest', [orchestrator, sessionId], [orchestrator, sessionId, from])) {
    store.checkpoints.delete(old);
    pruned++;
  }
  return pruned;
}

function history(store: Store, orchestrator: string, sessionId: string, before = Infinity, limit = 50): Checkpoint[] {
  const found: Checkpoint[] = [];
  const from = [orchestrator, sessionId, -before + 1];
  for (const checkpoint of store.checkpoints.by('latest', [orchestrator, sessionId], from)) {
    if (found.length >= limit) break;
    found.push(checkpoint);
  }
  return found;
}

/** Goes from one session to the next, past the other checkpoints of each. */
function sessionsWith(store: Store, orchestrator: string, { prefix = '', after = '', limit = 100 } = {}): string[] {
  const found: string[] = [];
  let from = after > prefix ? [orchestrator, after, Infinity] : [orchestrator, prefix];
  while (found.length < limit) {
    const sessionId = store.checkpoints.first('latest', [orchestrator], from)?.sessionId;
    if (sessionId === undefined || !sessionId.startsWith(prefix)) break;
    found.push(sessionId);
    from = [orchestrator, sessionId, Infinity];
  }
  return found;
}

/** Goes from one orchestrator to the next, past the checkpoints of each. */
function orchestratorsOf(store: Store, sessionId: string): string[] {
  const found: string[] = [];
  for (let next = store.checkpoints.first('session', [sessionId]); next;) {
    found.push(next.orchestrator);
    next = store.checkpoints.first('session', [sessionId], [sessionId, next.orchestrator, Infinity]);
  }
  return found;
}
