import { CheckpointConflictError } from '../../ledger/checkpoint.errors.js';
import { type StateAppend, type StateName } from '../../ledger/state.store.js';
import { TurnFencedError } from '../../ledger/turn.errors.js';
import { type ClaimRequest } from '../../ledger/turn.store.js';
import {
  anyVersion,
  versionAfter,
  anyTime,
  appendOf,
  entriesOf,
  foldOf,
  listOf,
  written,
} from './document-fixtures.js';
import { HOSTILE_NAMES, HOUR, SHORT, TICK } from './session-fixtures.js';
import { DESK, NOTES, TestLane } from './test-lane.js';
import { type ConformanceContext } from './target.js';

const PLAN: StateName = { namespace: 'conformance', scope: '', key: 'plan' };
const CART: StateName = { ...PLAN, key: 'cart' };
const WANTED: Pick<ClaimRequest, 'documents'> = { documents: { [DESK]: [PLAN, CART] } };

/** Tests that a claim returns documents of the session, and a settle appends to them in its commit (ORC-30). */
export function describeTurnsDocuments(context: ConformanceContext): void {
  let lane: TestLane;

  beforeEach(async () => {
    lane = await TestLane.open(context);
  });

  const at = (name: StateName) => ({ ...name, sessionId: lane.sessionId });
  const read = (name: StateName) => context.adapter.state.get(at(name));
  const change = (name: StateName, append: StateAppend) => ({ name, append });

  it('ORC-30 a claim returns the documents that its orchestrator requests, in that order', async () => {
    const { state } = context.adapter;
    const made = await state.set(at(PLAN), 'plan', { ttlMs: HOUR });
    await state.append(at(PLAN), appendOf(context, ['step'], { ttlMs: HOUR }));
    await state.set(at(CART), 'cart');
    const missing = { ...PLAN, key: 'missing' };

    const { documents } = await lane.run('hello', { documents: { other: [missing], [DESK]: [CART, missing, PLAN] } });
    expect(documents).toEqual([await read(CART), null, await read(PLAN)]);
    expect(documents[2]).toMatchObject({
      value: 'plan',
      batches: [{ entries: ['step'] }],
      version: versionAfter(made, 1),
    });
  });

  it('ORC-30 a claim returns no documents for an orchestrator that requests none', async () => {
    await context.adapter.state.set(at(PLAN), 'plan');
    const taken = async (request: Pick<ClaimRequest, 'documents'>) => {
      const { hold, documents } = await lane.take(request);
      await lane.adapter.turns.release(hold, 0);
      return documents;
    };
    await lane.queue('hello');
    expect(await taken({})).toEqual([]);
    expect(await taken({ documents: {} })).toEqual([]);
    expect(await taken({ documents: { [DESK]: [] } })).toEqual([]);
    expect(await taken({ documents: { other: [PLAN] } })).toEqual([]);
    expect(await taken(WANTED)).toEqual([written('plan'), null]);
  });

  it('ORC-30 a claim returns no expired document, and none of another session', async () => {
    const { state } = context.adapter;
    const other = await TestLane.open(context);
    await state.set({ ...CART, sessionId: other.sessionId }, 'of another');
    await state.set(at(PLAN), 'short', { ttlMs: SHORT });
    await context.elapse(SHORT + TICK);

    expect((await lane.run('hello', WANTED)).documents).toEqual([null, null]);
  });

  it('ORC-30 a claim that is sent twice returns them twice, and does not access them', async () => {
    const before = await context.adapter.state.set(at(PLAN), 'plan', { ttlMs: HOUR });
    await context.elapse(TICK);
    await lane.queue('hello');
    const request = lane.claimRequest(WANTED);
    const first = await lane.take(request);
    expect(await lane.take(request)).toEqual(first);
    expect(first.documents).toEqual([before, null]);
    expect(await read(PLAN)).toEqual(before);
  });

  it.each(['namespace', 'scope', 'key'] as const)(
    'ORC-30 distinguishes documents by every character of the %s',
    async (part) => {
      const names = HOSTILE_NAMES.map((name): StateName => ({ ...PLAN, [part]: name }));
      const { hold } = await lane.run('first');
      await lane.queue('second');
      const stateChanges = names.map((name) => change(name, appendOf(context, [name[part]], { initial: name[part] })));
      const { next } = await lane.settle(hold, { stateChanges }, lane.claimRequest({ documents: { [DESK]: names } }));

      expect(next?.documents.map((document) => document?.value)).toEqual(HOSTILE_NAMES);
      for (const name of names) expect(entriesOf(await read(name))).toEqual([name[part]]);
    },
  );

  it('ORC-30 distinguishes orchestrators, and returns nothing for the name of an inherited property', async () => {
    for (const name of HOSTILE_NAMES) await context.adapter.state.set(at({ ...PLAN, key: name }), name);
    // A computed key makes __proto__ an ordinary property.
    const documents = Object.fromEntries(HOSTILE_NAMES.map((name) => [name, [{ ...PLAN, key: name }]]));
    for (const name of HOSTILE_NAMES) {
      await lane.queue(name, { orchestrator: name });
      const claimed = await lane.take({ documents });
      expect(claimed.documents).toEqual([written(name)]);
      await lane.settle(claimed.hold);
    }
    for (const orchestrator of ['toString', 'constructor', '__proto__']) {
      await lane.queue('hello', { orchestrator });
      const claimed = await lane.take(WANTED);
      expect(claimed.documents).toEqual([]);
      await lane.settle(claimed.hold);
    }
  });

  it('ORC-30 a settle appends in its commit, and returns the new documents for the next turn', async () => {
    const { state } = context.adapter;
    await state.set(at(PLAN), [1]);
    const begun = await state.append(at(PLAN), appendOf(context, [2]));
    const { hold } = await lane.run('first');
    await lane.queue('second');
    const [planned, bought] = [
      appendOf(context, [3], { fold: foldOf(begun, 1, [1, 2]), ttlMs: HOUR }),
      appendOf(context, ['apple'], { initial: [] }),
    ];
    await context.elapse(TICK);
    const { turn, next } = await lane.settle(
      hold,
      { stateChanges: [change(PLAN, planned), change(CART, bought)] },
      lane.claimRequest(WANTED),
    );

    const [plan, cart] = [await read(PLAN), await read(CART)];
    expect(next?.documents).toEqual([plan, cart]);
    expect(plan).toEqual({
      value: [1, 2],
      batches: [{ id: planned.id, at: turn.settledAt, entries: [3] }],
      version: versionAfter(begun, 1),
      createdAt: anyTime(),
      accessedAt: turn.settledAt,
      expiresAt: anyTime(),
    });
    expect(cart).toEqual({
      value: [],
      batches: [{ id: bought.id, at: turn.settledAt, entries: ['apple'] }],
      version: anyVersion(),
      createdAt: turn.settledAt,
      accessedAt: turn.settledAt,
    });
  });

  it.each(['awaiting-input', 'completed', 'failed', 'cancelled'] as const)(
    'ORC-30 a turn that is %s appends the changes of its settlement',
    async (status) => {
      const { hold } = await lane.run('hello');
      await lane.settle(hold, { status, stateChanges: [change(PLAN, appendOf(context, [1], { initial: [] }))] });
      expect(listOf(await read(PLAN))).toEqual([1]);
    },
  );

  it('ORC-30 a settle may access a document without appending', async () => {
    const before = await context.adapter.state.set(at(PLAN), 'plan');
    await context.elapse(TICK);
    const { hold } = await lane.run('hello');
    const { turn } = await lane.settle(hold, { stateChanges: [change(PLAN, appendOf(context, []))] });
    expect(await read(PLAN)).toEqual({ ...before, accessedAt: turn.settledAt });
  });

  it('ORC-30 an append without effect does not change the settle', async () => {
    const { state } = context.adapter;
    const known = appendOf(context, ['known'], { initial: [] });
    const plan = await state.append(at(PLAN), known);
    const cart = await state.set(at(CART), 'cart');
    const missing = { ...PLAN, key: 'missing' };
    await context.elapse(TICK);
    const { hold, turn } = await lane.run('hello');
    const settlement = lane.settlement(turn, 0);
    const settled = await lane.settle(hold, {
      ...settlement,
      stateChanges: [
        change(PLAN, known),
        change(CART, appendOf(context, ['late'], { ifVersion: 7 })),
        change(missing, appendOf(context, ['nowhere'])),
        ...(settlement.stateChanges ?? []),
      ],
    });

    expect(settled.turn).toMatchObject({ status: 'awaiting-input', turnIndex: 0 });
    expect([await read(PLAN), await read(CART), await read(missing)]).toEqual([plan, cart, null]);
    expect(listOf({ ...(await read(NOTES))!, value: [] })).toEqual([0]);
    expect(await lane.messages()).toHaveLength(2);
  });

  it('ORC-30 a settle that is sent twice appends once, even after another client folded the batch', async () => {
    const { state } = context.adapter;
    await state.set(at(PLAN), []);
    const { hold } = await lane.run('first');
    await lane.queue('second');
    const settlement = { stateChanges: [change(PLAN, appendOf(context, [1]))] };
    const request = lane.claimRequest(WANTED);
    await lane.settle(hold, settlement, request);
    const fold = foldOf(await read(PLAN), 1, [1]);
    const folded = await state.append(at(PLAN), appendOf(context, [2], { fold }));
    const again = await lane.settle(hold, settlement, request);

    expect(await read(PLAN)).toEqual(folded);
    expect(listOf(folded)).toEqual([1, 2]);
    // The claim returns the current documents.
    expect(again.next?.documents).toEqual([folded, null]);
  });

  it('ORC-30 a fenced settle and a checkpoint conflict append nothing', async () => {
    const { state } = context.adapter;
    const before = await state.set(at(PLAN), []);
    await context.elapse(TICK);
    await lane.queue('hello');
    const stateChanges = [change(PLAN, appendOf(context, [1])), change(CART, appendOf(context, [1], { initial: [] }))];
    const { hold: lost } = await lane.lapse();
    const { hold, turn } = await lane.take();
    await expect(lane.settle(lost, { stateChanges })).rejects.toBeInstanceOf(TurnFencedError);
    const conflict = lane.settle(hold, { ...lane.settlement(turn, 1), stateChanges });
    await expect(conflict).rejects.toBeInstanceOf(CheckpointConflictError);

    expect([await read(PLAN), await read(CART)]).toEqual([before, null]);
    await lane.settle(hold, { ...lane.settlement(turn, 0), stateChanges });
    expect([listOf(await read(PLAN)), listOf(await read(CART))]).toEqual([[1], [1]]);
  });

  it('ORC-30 a turn of an expired session appends, a turn of an erased session does not', async () => {
    const stateChanges = [change(PLAN, appendOf(context, [1], { initial: [] }))];
    const expired = await lane.run('first');
    await context.sessions.expire(lane.sessionId);
    await lane.settle(expired.hold, { stateChanges });
    expect(listOf(await read(PLAN))).toEqual([1]);

    lane = await TestLane.open(context);
    const erased = await lane.run('first');
    await context.sessions.erase(lane.sessionId);
    await expect(lane.settle(erased.hold, { stateChanges })).rejects.toBeInstanceOf(TurnFencedError);
    expect(await read(PLAN)).toBeNull();
  });

  it('ORC-30 creates one document together with concurrent appends, and loses none of them', async () => {
    for (let round = 0; round < 10; round += 1) {
      lane = await TestLane.open(context);
      const { hold } = await lane.run('hello');
      const { clients } = context;
      const appends = [1, 2, 3, 4].map((n) =>
        clients[n % clients.length].state.append(at(PLAN), appendOf(context, [n], { initial: [] })),
      );
      const stateChanges = [change(PLAN, appendOf(context, [0], { initial: [] }))];
      await Promise.all([...appends, lane.settle(hold, { stateChanges })]);

      const document = await read(PLAN);
      expect(listOf(document).toSorted()).toEqual([0, 1, 2, 3, 4]);
      expect(document?.batches).toHaveLength(5);
    }
  });

  it('ORC-30 consecutive turns append in their order, whichever worker runs them', async () => {
    const count = 20;
    for (let n = 0; n < count; n += 1) await lane.queue(`turn ${n}`);
    for (let n = 0; n < count; n += 1) {
      const { turns } = context.clients[n % context.clients.length];
      const claimed = await turns.claim(lane.sessionId, lane.claimRequest(WANTED));
      if (!claimed) throw new Error('The turn could not be claimed.');
      const [plan] = claimed.documents;
      expect(listOf(plan)).toEqual(Array.from({ length: n }, (_, before) => before));
      const append = appendOf(context, [n], {
        initial: [],
        ...(plan ? { fold: foldOf(plan, plan.batches.length, listOf(plan)) } : {}),
      });
      await lane.settle(claimed.hold, { stateChanges: [change(PLAN, append)] });
    }
    const plan = await read(PLAN);
    expect(listOf(plan)).toEqual(Array.from({ length: count }, (_, n) => n));
    expect(plan?.batches).toHaveLength(1);
  });
}
