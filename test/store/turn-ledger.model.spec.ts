import fc from 'fast-check';
import {
  type AtomicSessionStoreAdapter,
  type ClaimedTurn,
  type ClaimRequest,
  type SessionsAdapter,
  SessionsError,
  type Turn,
  type TurnHold,
  type WaitResult,
} from 'nestjs-agent-sessions';
import { type ConformanceTarget } from '../../lib/testing/index.js';
import { mintId } from '../../lib/common/ids.js';
import { type CancelMode, WHEN_BUSY, type WhenBusy } from '../../lib/turn/turn.js';
import { ModelLane, type ModelTurn } from '../support/lane-model.js';
import { STORES } from '../support/stores.js';

/**
 * Random commands on a few sessions, on a store and on a plain model of the transition table; after each command both
 * must look the same. On a failure fast-check prints the seed and the shortest commands that show it.
 */

const SESSIONS = 2;
const MAX_QUEUED = 3;
const MAX_ATTEMPTS = 2;
const DESK = 'desk';
const SIGNALS = ['approval', 'payment'];
const CANCEL_MODES: CancelMode[] = ['cancel', 'interrupt', 'rollback'];
/** Nothing of this length passes in a test. */
const NEVER_MS = 600_000;

/** A store with a real clock only knows what is due at once and what is not. */
const RUNS: Record<string, { numRuns: number; durations: number[]; passing: number[] }> = {
  memory: { numRuns: 200, durations: [0, 10, 1000, NEVER_MS], passing: [1, 10, 1000] },
  sqlite: { numRuns: 40, durations: [0, NEVER_MS], passing: [1] },
};

interface Model {
  now: number;
  readonly lanes: ModelLane[];
}

interface RealLane {
  sessionId: string;
  hold: TurnHold | null;
  /** Holds that are no longer valid, and whether they settled their turn. */
  readonly lost: { readonly hold: TurnHold; readonly settled: boolean }[];
}

interface Real {
  readonly adapter: SessionsAdapter;
  readonly lanes: RealLane[];
  elapse(ms: number): Promise<void>;
}

describe.each(STORES)('the turn ledger against a model: $name', ({ name, open }) => {
  let target: ConformanceTarget;

  beforeAll(async () => {
    target = open();
    await target.adapter.init?.();
  });

  afterAll(() => target.adapter.close?.());

  it('TRN-01 does what the transition table says', async () => {
    const { numRuns, durations, passing } = RUNS[name];
    const commands = fc.commands(commandsOf(durations, passing), { size: 'large', maxCommands: 60 });
    await fc.assert(
      fc.asyncProperty(commands, async (commands) => {
        const real = await newReal(target);
        const model: Model = { now: 0, lanes: real.lanes.map(() => new ModelLane()) };
        await fc.asyncModelRun(() => ({ model, real }), commands);
        await assertNoLaneIsForgotten(model, real, name === 'memory');
      }),
      { numRuns },
    );
  }, 60_000);
});

/** One thing that somebody does to one of the lanes. */
class LaneCommand implements fc.AsyncCommand<Model, Real> {
  constructor(
    private readonly lane: number,
    private readonly label: string,
    private readonly play: (model: ModelLane, real: RealLane, world: { model: Model; real: Real }) => Promise<void>,
    private readonly possible: (model: ModelLane) => boolean = () => true,
  ) {}

  check(model: Readonly<Model>): boolean {
    return this.possible(model.lanes[this.lane]);
  }

  async run(model: Model, real: Real): Promise<void> {
    await this.play(model.lanes[this.lane], real.lanes[this.lane], { model, real });
    await assertSame(model, real);
  }

  toString(): string {
    return `lane ${this.lane}: ${this.label}`;
  }
}

function commandsOf(durations: number[], passing: number[]): fc.Arbitrary<LaneCommand>[] {
  const lane = fc.nat(SESSIONS - 1);
  const duration = fc.constantFrom(...durations);
  const which = fc.nat(5);
  const signal = fc.constantFrom(...SIGNALS);
  return [
    fc.tuple(lane, fc.constantFrom(...WHEN_BUSY)).map((args) => accept(...args)),
    fc.tuple(lane, fc.constant<WhenBusy>('enqueue')).map((args) => accept(...args)),
    fc.tuple(lane, duration).map((args) => claim(...args)),
    fc.tuple(lane, fc.constant(NEVER_MS)).map((args) => claim(...args)),
    fc
      .tuple(lane, fc.constantFrom('awaiting-input', 'failed', 'cancelled'), duration, fc.boolean())
      .map((args) => settle(...args)),
    fc.tuple(lane, fc.constantFrom(-1, 1)).map((args) => settleWithWrongCheckpoint(...args)),
    fc.tuple(lane, duration).map((args) => retry(...args)),
    fc.tuple(lane, duration).map((args) => release(...args)),
    fc.tuple(lane, signal, fc.option(duration)).map((args) => wait(...args)),
    fc.tuple(lane, which, signal).map((args) => sendSignal(...args)),
    fc.tuple(lane, which, fc.constantFrom(...CANCEL_MODES)).map((args) => cancel(...args)),
    fc.tuple(lane, duration).map((args) => renew(...args)),
    fc.tuple(lane, which, fc.nat(5)).map((args) => writeAsZombie(...args)),
    fc.tuple(lane, fc.nat(4)).map(([at, luck]) => (luck === 0 ? expire(at) : elapse(at, passing[0]))),
    fc.tuple(lane, fc.nat(9)).map(([at, luck]) => (luck === 0 ? deleteAndMakeAgain(at) : elapse(at, passing[0]))),
    fc.tuple(lane, fc.constantFrom(...passing)).map((args) => elapse(...args)),
  ];
}

const accept = (lane: number, whenBusy: WhenBusy) =>
  new LaneCommand(lane, `accept ${whenBusy}`, async (model, { sessionId }, { real }) => {
    const id = mintId();
    const expected = model.accept(id, whenBusy, MAX_QUEUED);
    const accepted = await outcomeOf(
      real.adapter.turns.accept({
        id,
        sessionId,
        orchestrator: DESK,
        version: '1',
        request: { input: { text: id } },
        attributes: {},
        whenBusy,
        maxQueued: MAX_QUEUED,
      }),
    );
    expect(accepted).toEqual(expected ?? (expect.objectContaining({ duplicate: false }) as unknown));
  });

const claim = (lane: number, leaseMs: number) =>
  new LaneCommand(lane, `claim for ${leaseMs}`, async (model, laneOf, { model: { now }, real }) => {
    const expected = model.claim({ leaseUntil: now + leaseMs, maxAttempts: MAX_ATTEMPTS }, now);
    const claimed = await real.adapter.turns.claim(laneOf.sessionId, claimRequest(leaseMs));
    expect(given(claimed)).toEqual(wanted(expected));
    if (claimed) take(laneOf, claimed.hold);
    else if (!model.running) lose(laneOf);
  });

const settle = (lane: number, status: 'awaiting-input' | 'failed' | 'cancelled', leaseMs: number, handOver: boolean) =>
  new LaneCommand(
    lane,
    `settle as ${status}${handOver ? `, and claim for ${leaseMs}` : ''}`,
    async (model, laneOf, { model: { now }, real }) => {
      const turn = model.running as ModelTurn;
      const turnIndex = model.checkpoints;
      model.settle(turn, status);
      const ok = status === 'awaiting-input';
      const expected = handOver ? model.claim({ leaseUntil: now + leaseMs, maxAttempts: MAX_ATTEMPTS }, now) : null;
      const hold = laneOf.hold as TurnHold;
      const { next, ring } = await real.adapter.turns.settle(
        hold,
        {
          status,
          messages: ok ? [{ id: turn.id, role: 'user', content: turn.id }] : [],
          ...(ok ? { checkpoint: checkpointOf(laneOf.sessionId, turnIndex) } : {}),
          keepCheckpoints: 'all',
        },
        handOver ? claimRequest(leaseMs) : undefined,
      );
      lose(laneOf, true);
      expect(given(next)).toEqual(wanted(expected));
      expect(ring).toBe(!next && model.isClaimable(now));
      if (next) take(laneOf, next.hold);
    },
    isRunning,
  );

const settleWithWrongCheckpoint = (lane: number, off: number) =>
  new LaneCommand(
    lane,
    `settle with a checkpoint that is off by ${off}`,
    async (model, { hold, sessionId }, { real }) => {
      const refused = await outcomeOf(
        real.adapter.turns.settle(hold as TurnHold, {
          status: 'completed',
          messages: [{ id: mintId(), role: 'assistant', content: 'never' }],
          checkpoint: checkpointOf(sessionId, model.checkpoints + off),
          keepCheckpoints: 1,
        }),
      );
      expect(refused).toBe('CHECKPOINT_CONFLICT');
    },
    isRunning,
  );

const retry = (lane: number, delayMs: number) =>
  new LaneCommand(
    lane,
    `retry in ${delayMs}`,
    async (model, laneOf, { model: { now }, real }) => {
      model.retry(model.running as ModelTurn, now + delayMs);
      await real.adapter.turns.retry(laneOf.hold as TurnHold, { error: { name: 'Error', message: 'no' }, delayMs });
      lose(laneOf);
    },
    isRunning,
  );

const release = (lane: number, delayMs: number) =>
  new LaneCommand(
    lane,
    `release, to be offered in ${delayMs}`,
    async (model, laneOf, { real }) => {
      model.release(model.running as ModelTurn);
      await real.adapter.turns.release(laneOf.hold as TurnHold, delayMs);
      lose(laneOf);
    },
    isRunning,
  );

const wait = (lane: number, signal: string, timeoutMs: number | null) =>
  new LaneCommand(
    lane,
    `wait for ${signal} for ${timeoutMs}`,
    async (model, laneOf, { model: { now }, real }) => {
      const turn = model.running as ModelTurn;
      model.wait(turn, signal, timeoutMs === null ? Infinity : now + timeoutMs);
      const step = { iteration: 0, intent: 'answer', name: signal, occurrence: 0 };
      const { received } = await real.adapter.turns.wait(laneOf.hold as TurnHold, {
        signal,
        step,
        ...(timeoutMs === null ? {} : { timeoutMs }),
      });
      expect(received !== undefined).toBe(turn.status === 'running');
      if (!received) lose(laneOf);
    },
    isRunning,
  );

const sendSignal = (lane: number, which: number, signal: string) =>
  new LaneCommand(
    lane,
    `signal ${signal} to turn ${which}`,
    async (model, _, { real }) => {
      const turn = pick(model, which);
      const expected = model.signal(turn, signal);
      const sent = await outcomeOf(real.adapter.turns.signal(turn.id, signal, 'payload'));
      expect(typeof sent === 'string' ? sent : sent.accepted).toBe(expected);
    },
    hasTurns,
  );

const cancel = (lane: number, which: number, mode: CancelMode) =>
  new LaneCommand(
    lane,
    `${mode} turn ${which}`,
    async (model, _, { real }) => {
      const turn = pick(model, which);
      model.cancel(turn, mode);
      expect((await real.adapter.turns.cancel(turn.id, mode)).turn.status).toBe(turn.status);
    },
    hasTurns,
  );

const renew = (lane: number, leaseMs: number) =>
  new LaneCommand(
    lane,
    `renew for ${leaseMs}`,
    async (model, { hold }, { model: { now }, real }) => {
      model.leaseUntil = now + leaseMs;
      const { cancelMode } = await real.adapter.turns.renew(hold as TurnHold, leaseMs);
      expect(cancelMode ?? null).toBe(model.running?.mark);
    },
    isRunning,
  );

/** Whoever lost a turn sends one write for it. */
const writeAsZombie = (lane: number, which: number, write: number) =>
  new LaneCommand(lane, `zombie ${which} sends write ${write}`, async (_, { lost }, { real }) => {
    if (lost.length === 0) return;
    const { hold, settled } = lost[which % lost.length];
    const { turns } = real.adapter;
    const step = { iteration: 0, intent: 'answer', name: 'late', occurrence: 0 };
    const writes = [
      () => turns.renew(hold, NEVER_MS),
      () => turns.retry(hold, { error: { name: 'Error', message: 'late' }, delayMs: 0 }),
      () => turns.release(hold, 0),
      () => turns.wait(hold, { signal: 'late', step }),
      () => turns.saveStep(hold, { ...step, value: 1 }),
      () => turns.settle(hold, { status: 'completed', messages: [], keepCheckpoints: 1 }),
    ];
    const outcome = await outcomeOf<unknown>(writes[write]());
    // A settle that is sent again is answered again.
    if (settled && write === 5) expect(outcome).toMatchObject({ turn: { id: hold.turnId } });
    else expect(outcome).toBe('TURN_FENCED');
  });

const expire = (lane: number) =>
  new LaneCommand(lane, 'expire', async (model, { sessionId }, { real }) => {
    model.expire();
    await sessionsOf(real.adapter).expire(sessionId);
  });

const deleteAndMakeAgain = (lane: number) =>
  new LaneCommand(lane, 'delete and make again', async (_, laneOf, { model, real }) => {
    model.lanes[lane] = new ModelLane();
    await sessionsOf(real.adapter).delete(laneOf.sessionId);
    await createSession(real.adapter, laneOf.sessionId);
    lose(laneOf);
    laneOf.lost.splice(0, Infinity, ...laneOf.lost.map(({ hold }) => ({ hold, settled: false })));
  });

const elapse = (lane: number, ms: number) =>
  new LaneCommand(lane, `${ms} ms pass`, async (_, __, { model, real }) => {
    model.now += ms;
    await real.elapse(ms);
  });

async function assertSame(model: Model, { adapter, lanes }: Real): Promise<void> {
  for (const [index, { sessionId }] of lanes.entries()) {
    const expected = model.lanes[index];
    const turns = await adapter.turns.list({ sessionId, limit: 1000 });
    expect(turns.map(shown)).toEqual(expected.turns.map(modelled));
    expect(turns.map(({ position }) => position)).toEqual(turns.map((_, at) => at + 1));
    expect(turns.filter(({ status }) => status === 'running').length).toBeLessThanOrEqual(1);
    const checkpoints = await adapter.checkpoints.history(DESK, sessionId, { limit: 1000 });
    expect(checkpoints.map(({ turnIndex }) => turnIndex).reverse()).toEqual([...Array(expected.checkpoints).keys()]);
    const messages = await adapter.conversations.page(sessionId, { limit: 1000 });
    expect(messages.map(({ content }) => content)).toEqual(expected.messages);
  }
}

/** Whatever rings were lost: in the end somebody is told of every lane that has something to do, and of no other. */
async function assertNoLaneIsForgotten(model: Model, real: Real, timePasses: boolean): Promise<void> {
  if (!timePasses) return;
  model.now += NEVER_MS;
  await real.elapse(NEVER_MS);
  const due = new Set(await real.adapter.turns.due(100_000));
  for (const [index, { sessionId }] of real.lanes.entries()) {
    expect(due.has(sessionId)).toBe(model.lanes[index].isClaimable(model.now));
  }
}

/** What a claim gave: the turn, and what its waits gave. */
const given = (claimed: ClaimedTurn | null) =>
  claimed && {
    id: claimed.turn.id,
    steps: claimed.steps.map(({ name, value }) => [name, (value as unknown as WaitResult).received]).sort(),
  };

const wanted = (turn: ModelTurn | null) =>
  turn && { id: turn.id, steps: [...turn.steps].map(([name, result]) => [name, result === 'received']).sort() };

const shown = ({ id, status, failures, cancelMode, waitingFor, dueAt }: Turn) =>
  [id, status, failures, cancelMode ?? null, waitingFor?.signal ?? null, dueAt !== undefined] as const;

const modelled = ({ id, status, failures, mark, waitsFor, dueAt }: ModelTurn) =>
  [id, status, failures, mark, waitsFor?.signal ?? null, dueAt !== null] as const;

const isRunning = (model: ModelLane): boolean => model.running !== undefined;
const hasTurns = (model: ModelLane): boolean => model.turns.length > 0;
/** Of the latest turns: those are the interesting ones. */
const pick = (model: ModelLane, which: number): ModelTurn => model.turns[Math.max(0, model.turns.length - 1 - which)];

function take(lane: RealLane, hold: TurnHold): void {
  if (lane.hold) expect(hold.fence).toBeGreaterThan(lane.hold.fence);
  lose(lane);
  lane.hold = hold;
}

function lose(lane: RealLane, settled = false): void {
  if (lane.hold) lane.lost.push({ hold: lane.hold, settled });
  lane.hold = null;
}

function claimRequest(leaseMs: number): ClaimRequest {
  return { holder: mintId(), leaseMs, maxAttempts: MAX_ATTEMPTS, windows: {} };
}

function checkpointOf(sessionId: string, turnIndex: number) {
  return {
    orchestrator: DESK,
    sessionId,
    turnIndex,
    state: {},
    lastRoute: [],
    signature: '',
    version: '1',
    summarizedThrough: 0,
  };
}

/** What came, or the code of the typed error. */
async function outcomeOf<T>(call: Promise<T>): Promise<T | string> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof SessionsError) return error.code;
    throw error;
  }
}

const sessionsOf = (adapter: SessionsAdapter) => adapter.sessions as AtomicSessionStoreAdapter;

async function createSession(adapter: SessionsAdapter, id: string): Promise<void> {
  const draft = { id, userId: 'user', attachedSurfaces: [], metadata: {} };
  await sessionsOf(adapter).create(draft, { policy: 'move', maxSurfaces: 16 });
}

async function newReal({ adapter, elapse }: ConformanceTarget): Promise<Real> {
  const lanes = Array.from({ length: SESSIONS }, (): RealLane => ({ sessionId: mintId(), hold: null, lost: [] }));
  for (const { sessionId } of lanes) await createSession(adapter, sessionId);
  return {
    adapter,
    lanes,
    elapse: elapse ?? ((ms) => new Promise((resolve) => setTimeout(resolve, ms))),
  };
}
