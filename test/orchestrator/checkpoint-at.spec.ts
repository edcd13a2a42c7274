import {
  type Checkpoint,
  CheckpointNotFoundError,
  type CheckpointStore,
  memoryAdapter,
  SessionStore,
} from 'nestjs-agent-sessions';
import { checkpointAt, turnsAfter } from '../../lib/ledger/checkpoint-at.js';
import { rejection } from '../support/running-application.js';
import { collect } from '../support/session-state.js';

describe('a checkpoint that is appended between two reads', () => {
  const common = { orchestrator: 'desk', state: {}, lastRoute: [], signature: 's', version: '1', summarizedThrough: 0 };

  /** A session whose checkpoint at the index is appended right after the first read of that index. */
  async function racing(
    index: number,
  ): Promise<{ store: CheckpointStore; sessionId: string; append: (n: number) => Promise<Checkpoint> }> {
    const { checkpoints, sessions } = memoryAdapter();
    const { id: sessionId } = await new SessionStore(sessions).create({ userId: 'ann' });
    const append = (turnIndex: number): Promise<Checkpoint> => {
      const parent = turnIndex === 0 ? {} : { parent: turnIndex - 1 };
      return checkpoints.append({ ...common, ...parent, sessionId, turnIndex, turnId: `turn ${turnIndex}` }, 'all');
    };
    for (let n = 0; n < index; n += 1) await append(n);
    let came = false;
    const load: CheckpointStore['load'] = async (orchestrator, session, wanted) => {
      const found = await checkpoints.load(orchestrator, session, wanted);
      if (wanted === index && !came) {
        came = true;
        await append(index);
      }
      return found;
    };
    return { store: { load } as CheckpointStore, sessionId, append };
  }

  it('BOT-25 is returned, and not reported as pruned', async () => {
    const { store, sessionId } = await racing(1);
    const first = await checkpointAt(store, 'desk', sessionId, 0);
    expect(await collect(turnsAfter(store, first))).toEqual(['turn 1']);
    const other = await racing(3);
    expect(await checkpointAt(other.store, 'desk', other.sessionId, 3)).toMatchObject({ turnId: 'turn 3' });
  });

  it('BOT-25 distinguishes a checkpoint that never existed from a pruned one', async () => {
    const { checkpoints, sessions } = memoryAdapter();
    const { id: sessionId } = await new SessionStore(sessions).create({ userId: 'ann' });
    await rejection(checkpointAt(checkpoints, 'desk', sessionId), CheckpointNotFoundError);
    for (let turnIndex = 0; turnIndex < 4; turnIndex += 1) {
      await checkpoints.append({ ...common, sessionId, turnIndex }, 2);
    }
    await rejection(checkpointAt(checkpoints, 'desk', sessionId, 4), CheckpointNotFoundError);
    await rejection(checkpointAt(checkpoints, 'desk', sessionId, 1), CheckpointNotFoundError, 'CHECKPOINT_PRUNED');
    const kept = await checkpointAt(checkpoints, 'desk', sessionId, 2);
    await rejection(
      collect(turnsAfter(checkpoints, { ...kept, turnIndex: 0 })),
      CheckpointNotFoundError,
      'CHECKPOINT_PRUNED',
    );
    expect(await collect(turnsAfter(checkpoints, { ...kept, turnIndex: 3 }))).toEqual([]);
  });
});
