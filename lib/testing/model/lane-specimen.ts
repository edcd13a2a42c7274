import { LaneDriver } from './lane-driver.js';
import { LaneModel } from './lane-model.js';
import { type LaneAction, laneActions, type LaneOperation } from './lane-operation.js';
import { NEVER_MS, type Specimen } from './specimen.js';

/** The turns of a session (TurnLedger), with the checkpoints and messages that it settles. */
export const LANE: Specimen<LaneAction, LaneOperation, LaneModel> = {
  actions: laneActions,

  reads: [{ type: 'session' }, { type: 'lane' }, { type: 'turns' }, { type: 'messages' }, { type: 'checkpoints' }],

  model: () => new LaneModel(),

  async open(context) {
    const driver = new LaneDriver(context.id());
    await driver.send(context.adapter, { type: 'create' });
    return driver;
  },

  /** Checks that `due` returns exactly the lanes with due work, even after lost notifications. */
  async afterwards(context, subjects) {
    for (const [sessionId, { mode }] of subjects) {
      if (mode === 'paused') await context.adapter.turns.control({ sessionId, mode: 'open' });
    }
    await context.moveClock?.(NEVER_MS);
    const due = new Set(await context.adapter.turns.due(100_000));
    for (const [sessionId, model] of subjects) {
      model.elapse(NEVER_MS);
      expect({ sessionId, due: due.has(sessionId) }).toEqual({ sessionId, due: model.isClaimable });
    }
  },
};
