import { type ClaimedTurn, type TurnSettlement } from '../../ledger/turn.store.js';
import { type CancelMode, WHEN_BUSY } from '../../ledger/turn.js';
import { type Call, itMayBeSentTwice, Refused } from './sent-twice.js';
import { DESK, LONG_MS, NOTES, TestLane, WAYS_BACK } from './test-lane.js';
import { type ConformanceContext } from './target.js';

const ERROR = { name: 'Error', message: 'no', code: 'NO' };
const FENCED = (): Refused => new Refused('TURN_FENCED');
const same = <Answer>(first: Answer): Answer => first;

/** Tests that every method of TurnLedger may be sent twice. */
export function describeRepeatsOfTurns(context: ConformanceContext): void {
  /** Registers the tests of a call on a new lane. */
  const repeat = <Answer>(
    title: string,
    prepare: (lane: TestLane) => Promise<Pick<Call<Answer>, 'send' | 'again'> & Partial<Call<Answer>>>,
  ): void =>
    itMayBeSentTwice(title, context, async () => {
      const lane = await TestLane.open(context);
      return { look: () => lane.snapshot(), ...(await prepare(lane)) };
    });

  for (const whenBusy of WHEN_BUSY.filter((policy) => policy !== 'reject')) {
    repeat(`TRN-01 TRN-06 accept on a busy lane, ${whenBusy}`, async (lane) => {
      await lane.run('holder');
      await lane.queue('queued');
      return accepting(lane, whenBusy);
    });
    repeat(`TRN-01 TRN-06 accept while a turn waits, ${whenBusy}`, async (lane) => {
      await waiting(lane);
      return accepting(lane, whenBusy);
    });
    for (const way of WAYS_BACK) {
      repeat(`TRN-01 TRN-06 accept while a turn that has begun ${way}, ${whenBusy}`, async (lane) => {
        const { hold } = await lane.run('holder');
        await lane.queue('queued');
        await lane.putBack(way, hold);
        return accepting(lane, whenBusy);
      });
    }
  }

  for (const whenBusy of WHEN_BUSY) {
    repeat(`TRN-01 TRN-06 accept on an idle lane, ${whenBusy}`, async (lane) => accepting(lane, whenBusy));
  }

  for (const whenBusy of WHEN_BUSY) {
    repeat(`TRN-01 TRN-03 accept with a claim on an idle lane, ${whenBusy}`, async (lane) => {
      const request = {
        ...lane.acceptRequest('new', { whenBusy }),
        claim: lane.claimRequest({ windows: { [DESK]: 10 } }),
      };
      return {
        send: ({ turns }) => turns.accept(request),
        again: (first) => ({ ...first, duplicate: true, ...(first.claimed ? { turn: first.claimed.turn } : {}) }),
      };
    });
  }

  repeat('TRN-05 accept with an idempotency key', async (lane) => {
    const request = lane.acceptRequest('hello', { idempotency: { key: 'key', hash: 'hash', ttlMs: LONG_MS } });
    return {
      send: ({ turns }) => turns.accept(request),
      again: (first) => ({ ...first, duplicate: true }),
    };
  });

  repeat('TRN-07 accept that fills the lane', async (lane) => {
    const request = lane.acceptRequest('hello', { maxQueued: 1 });
    return {
      send: ({ turns }) => turns.accept(request),
      again: (first) => ({ ...first, duplicate: true }),
    };
  });

  repeat('TRN-03 claim', async (lane) => {
    await lane.queue('first');
    await lane.queue('second');
    return claiming(lane);
  });

  repeat('TRN-08 claim of a turn whose worker was lost', async (lane) => {
    await lane.queue('first');
    await lane.lapse();
    return claiming(lane);
  });

  repeat('TRN-08 claim that fails a poison turn and gives the next', async (lane) => {
    await lane.queue('poison');
    await lane.queue('second');
    await lane.lapse();
    return claiming(lane, 1);
  });

  repeat('TRN-13 claim after a time-out', async (lane) => {
    const { hold } = await lane.run('first');
    await lane.adapter.turns.wait(hold, { signal: 'go', step: lane.step('go', null), timeoutMs: 0 });
    return claiming(lane);
  });

  repeat('TRN-06 claim that ends an interrupted turn whose worker was lost', async (lane) => {
    await lane.queue('first');
    const { hold } = await lane.lapse();
    await lane.adapter.turns.cancel(hold.turnId, 'interrupt');
    await lane.queue('second');
    return claiming(lane);
  });

  repeat('TRN-03 renew', async (lane) => {
    const { hold } = await lane.run('first');
    await lane.adapter.turns.cancel(hold.turnId, 'interrupt');
    return { send: ({ turns }) => turns.renew(hold, LONG_MS), again: same };
  });

  repeat('FIX-04 saveAwaited', async (lane) => {
    const { hold } = await lane.run('first');
    const awaited = [{ sessionId: 'child', turnId: 'child-turn' }];
    return { send: ({ turns }) => turns.saveAwaited(hold, awaited), again: same };
  });

  repeat('TRN-01 settle', async (lane) => {
    await lane.settle(...(await answered(lane, 0)));
    const [hold, settlement] = await answered(lane, 1);
    return settling(lane, hold, { ...settlement, keepCheckpoints: 1 });
  });

  repeat('TRN-01 settle that asks for the next turn', async (lane) => {
    const [hold, settlement] = await answered(lane, 0);
    await lane.queue('second');
    await lane.queue('third');
    return settling(lane, hold, settlement, true);
  });

  repeat('TRN-08 settle of a turn that failed', async (lane) => {
    const { hold } = await lane.run('first');
    await lane.queue('second');
    return settling(lane, hold, { status: 'failed', error: ERROR }, true);
  });

  repeat('TRN-06 settle of a turn that was interrupted', async (lane) => {
    const [hold, { messages = [] }] = await answered(lane, 0);
    await lane.queue('second', { whenBusy: 'interrupt' });
    return settling(lane, hold, { status: 'cancelled', messages });
  });

  repeat('TRN-01 settle of a turn whose session expired', async (lane) => {
    const [hold, settlement] = await answered(lane, 0);
    await context.sessions.expire(lane.sessionId);
    return settling(lane, hold, settlement, true);
  });

  for (const mode of [null, 'cancel', 'interrupt'] as const) {
    const marked = mode === null ? '' : ` of a turn that was asked to stop (${mode})`;

    repeat(`TRN-08 retry${marked}`, async (lane) => {
      const hold = await running(lane, mode);
      return { send: ({ turns }) => turns.retry(hold, { error: ERROR, delayMs: LONG_MS }), again: FENCED };
    });

    repeat(`TRN-14 release${marked}`, async (lane) => {
      const hold = await running(lane, mode);
      return { send: ({ turns }) => turns.release(hold, 0), again: FENCED };
    });

    repeat(`TRN-13 wait${marked}`, async (lane) => {
      const hold = await running(lane, mode);
      const wait = { signal: 'go', step: lane.step('go', null), timeoutMs: LONG_MS };
      return { send: ({ turns }) => turns.wait(hold, wait), again: FENCED };
    });
  }

  repeat('TRN-13 wait for a signal that came early', async (lane) => {
    const claimed = await runningWithSteps(lane);
    await lane.adapter.turns.signal(claimed.hold.turnId, 'go', { by: 'Ann' });
    const wait = { signal: 'go', step: lane.step('go', null) };
    return { send: ({ turns }) => turns.wait(claimed.hold, wait), again: same, look: claimed.look };
  });

  repeat('TRN-13 signal to a turn that waits for it', async (lane) => {
    const { hold } = await waiting(lane);
    await lane.queue('second');
    return {
      send: ({ turns }) => turns.signal(hold.turnId, 'go', { by: 'Ann' }),
      again: (first) => ({ ...first, accepted: false, notify: false }),
    };
  });

  repeat('TRN-13 signal that comes early', async (lane) => {
    const { id } = await lane.queue('first');
    return {
      send: ({ turns }) => turns.signal(id, 'go', { by: 'Ann' }),
      again: (first) => ({ ...first, accepted: false }),
    };
  });

  repeat('TRN-09 cancel of the head', async (lane) => {
    const { id } = await lane.queue('first');
    await lane.queue('second');
    return cancelling(id, 'cancel');
  });

  repeat('TRN-09 cancel of a turn behind it', async (lane) => {
    await lane.run('first');
    const { id } = await lane.queue('second');
    await lane.queue('third');
    return cancelling(id, 'cancel');
  });

  for (const mode of ['cancel', 'interrupt', 'rollback'] as const) {
    repeat(`TRN-09 cancel of a waiting turn (${mode})`, async (lane) => {
      const { hold } = await waiting(lane);
      await lane.queue('second');
      return cancelling(hold.turnId, mode);
    });

    repeat(`TRN-09 cancel of a running turn (${mode})`, async (lane) => {
      const { hold } = await lane.run('first');
      return cancelling(hold.turnId, mode);
    });
  }

  for (const mode of ['paused', 'draining', 'open'] as const) {
    for (const before of ['paused', 'draining', 'open'] as const) {
      repeat(`TRN-11 control from ${before} to ${mode}`, async (lane) => {
        await lane.queue('first');
        await lane.control(before);
        await lane.claim();
        const { sessionId } = lane;
        return { send: ({ turns }) => turns.control({ sessionId, mode }), again: same, look: lookAt(lane) };
      });
    }
  }

  repeat('TRN-11 control of a lane whose worker was lost', async (lane) => {
    await lane.queue('first');
    await lane.lapse();
    await lane.control('paused');
    await lane.claim();
    const { sessionId } = lane;
    return { send: ({ turns }) => turns.control({ sessionId, mode: 'open' }), again: same, look: lookAt(lane) };
  });

  repeat('TRN-11 clear', async (lane) => {
    await lane.run('first');
    await lane.queue('second');
    await lane.queue('third');
    return { send: ({ turns }) => turns.clear(lane.sessionId), again: () => 0, look: lookAt(lane) };
  });

  repeat('BOT-30 saveStep', async (lane) => {
    const { hold, look } = await runningWithSteps(lane);
    const step = lane.step('charge', { id: 1 });
    return { send: ({ turns }) => turns.saveStep(hold, step), again: same, look };
  });

  it('TRN-03 a late repeat of a worker that lost its turn changes nothing', async () => {
    const lane = await TestLane.open(context);
    const { hold } = await lane.run('first');
    const { turns } = lane.adapter;
    await turns.release(hold, 0);
    const successor = await lane.take();
    const before = await lane.snapshot();

    await expect(turns.release(hold, 0)).rejects.toMatchObject({ code: 'TURN_FENCED' });
    expect(await lane.snapshot()).toEqual(before);
    expect(await turns.renew(successor.hold, LONG_MS)).toEqual({});
  });
}

function accepting(lane: TestLane, whenBusy: (typeof WHEN_BUSY)[number]) {
  const request = lane.acceptRequest('new', { whenBusy });
  const call: Pick<Call<Awaited<ReturnType<TestLane['accept']>>>, 'send' | 'again'> = {
    send: ({ turns }) => turns.accept(request),
    // The first response may have been lost, so the repeat asks to notify again.
    again: (first) => ({ ...first, duplicate: true, notify: true }),
  };
  return call;
}

function claiming(lane: TestLane, maxLost = 100) {
  const request = lane.claimRequest({ maxLost, windows: { [DESK]: 10 }, documents: { [DESK]: [NOTES] } });
  const call: Pick<Call<ClaimedTurn | null>, 'send' | 'again'> = {
    send: ({ turns }) => turns.claim(lane.sessionId, request),
    again: same,
  };
  return call;
}

function settling(
  lane: TestLane,
  hold: ClaimedTurn['hold'],
  changes: Partial<TurnSettlement>,
  andNext = false,
): Pick<Call<Awaited<ReturnType<TestLane['settle']>>>, 'send' | 'again'> {
  const settlement: TurnSettlement = { status: 'awaiting-input', messages: [], keepCheckpoints: 'all', ...changes };
  const next = andNext ? lane.claimRequest({ windows: { [DESK]: 10 }, documents: { [DESK]: [NOTES] } }) : undefined;
  return {
    send: ({ turns }) => turns.settle(hold, settlement, next),
    // The second call does not change the session again.
    again: ({ sessionChange: _, ...first }) => first,
  };
}

function cancelling(turnId: string, mode: CancelMode) {
  const call: Pick<Call<{ notify: boolean }>, 'send' | 'again'> = {
    send: ({ turns }) => turns.cancel(turnId, mode),
    again: (first) => ({ ...first, notify: false }),
  };
  return call;
}

/** Returns the hold of a running turn, and a settlement for it. */
async function answered(lane: TestLane, turnIndex: number): Promise<[ClaimedTurn['hold'], Partial<TurnSettlement>]> {
  const { hold, turn } = await lane.run(`turn ${turnIndex}`);
  return [hold, lane.settlement(turn, turnIndex)];
}

async function running(lane: TestLane, mode: CancelMode | null): Promise<ClaimedTurn['hold']> {
  const { hold } = await lane.run('first');
  await lane.queue('second');
  if (mode !== null) await lane.adapter.turns.cancel(hold.turnId, mode);
  return hold;
}

/** Prepares a running turn. `look` also returns its steps, which only a claim shows. */
async function runningWithSteps(lane: TestLane): Promise<ClaimedTurn & { look: () => Promise<unknown> }> {
  const request = lane.claimRequest();
  await lane.queue('first');
  const claimed = await lane.take(request);
  const look = async () => ({ lane: await lane.snapshot(), steps: (await lane.take(request)).steps });
  return { ...claimed, look };
}

/** Reads the lane with its mode and its holder. */
function lookAt(lane: TestLane): () => Promise<unknown> {
  return async () => ({ ...(await lane.snapshot()), lane: await lane.adapter.turns.lane(lane.sessionId) });
}

async function waiting(lane: TestLane): Promise<ClaimedTurn> {
  const claimed = await lane.run('first');
  await lane.adapter.turns.wait(claimed.hold, { signal: 'go', step: lane.step('go', null), timeoutMs: LONG_MS });
  return claimed;
}
