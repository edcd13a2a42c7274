import { type ChildProcess } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { placeOfNotifications } from '../support/bullmq.js';
import { forkProgram, kill } from '../support/child-process.js';
import { eventually } from '../support/eventually.js';
import { FAST_PLACE } from '../support/fast-place.js';
import { Heap } from '../support/heap.js';
import { MARIADB, REDIS, TEST_SERVERS } from '../support/servers.js';
import { BEHAVIOUR_STORES, temporaryFolder, type TestStore } from '../support/stores.js';

const PROGRAM = join(import.meta.dirname, 'fixtures/lanes.mjs');
const TIMES = 5;

/** The expected outcomes of the scenarios in fixtures/lanes.mjs. */
const ENDS = {
  runs: ['awaiting-input'],
  // Three events, one, and `settled`; the Observable is left at its first event.
  isWatched: [[5, 'delta']],
  isWatchedWhileItWaits: ['cancelled'],
  isNotWaitedFor: ['TURN_WAIT_TIMEOUT'],
  isCancelled: ['TURN_CANCELLED'],
  isAborted: [['TURN_CANCELLED', 'cancelled']],
  isNeverAborted: ['awaiting-input'],
  isCancelledInTheQueue: ['TURN_CANCELLED'],
  isCleared: ['TURN_CANCELLED'],
  isSuperseded: ['TURN_SUPERSEDED'],
  expires: ['TURN_CANCELLED'],
  isDeleted: ['TURN_NOT_FOUND'],
  waitsAndGoesOn: ['awaiting-input'],
  waitsInVain: ['TURN_CANCELLED'],
  isTriedAgain: ['at last'],
  fails: ['TURN_FAILED'],
  leavesSomethingOpen: ['left'],
  isPaused: ['awaiting-input'],
};

/** Objects that exist only while a turn is in progress. */
const OF_TURNS = [
  'TurnAttempt',
  'TurnSteps',
  'TurnEventWriter',
  'TurnEventFeed',
  'AwaitingSignal',
  'TurnStoppedError',
] as const;

/** A process with an application in it. */
class Lanes {
  private static readonly running = new Set<ChildProcess>();
  private readonly answers = new EventEmitter();
  private calls = 0;

  private constructor(private readonly child: ChildProcess) {
    child.on('message', (answer: { id: number }) => this.answers.emit(String(answer.id), answer));
  }

  static async start(setup: object): Promise<Lanes> {
    const child = forkProgram(PROGRAM, setup);
    this.running.add(child);
    const lanes = new Lanes(child);
    await once(lanes.answers, '0');
    return lanes;
  }

  static async killAll(): Promise<void> {
    const running = [...this.running];
    this.running.clear();
    await Promise.all(running.map(kill));
  }

  async call(method: string, ...args: unknown[]): Promise<unknown> {
    this.calls += 1;
    const id = this.calls;
    const answered = once(this.answers, String(id)) as Promise<[{ result?: unknown; error?: string }]>;
    this.child.send({ id, method, args });
    const [{ result, error }] = await answered;
    if (error !== undefined) throw new Error(error);
    return result;
  }

  /** The idle lanes that the process still references. */
  async held(): Promise<{ texts: string[]; instances: Record<string, number> }> {
    const file = join(temporaryFolder(FAST_PLACE), 'lanes.heapsnapshot');
    await this.call('snapshot', file);
    const heap = Heap.read(file);
    const instances = OF_TURNS.map((name) => [name, heap.instances(name)] as const);
    return { texts: heap.texts(/\bzebra[ -][\w.]+/g), instances: Object.fromEntries(instances) };
  }
}

const NOTHING = { texts: [], instances: Object.fromEntries(OF_TURNS.map((name) => [name, 0])) };

/**
 * Looks until nothing is held. A look takes seconds of the processor: Node writes and this process reads the whole heap. So a second look
 * waits until the connections that `rest` uses may have been closed, too.
 */
async function expectNothingHeld(lanes: Lanes, api = lanes): Promise<void> {
  let held = {};
  const holdsNothing = async (): Promise<boolean> => {
    await api.call('rest');
    held = await lanes.held();
    return isDeepStrictEqual(held, NOTHING);
  };
  await eventually(holdsNothing, { limitMs: 40_000, everyMs: 11_000 }).catch(() => expect(held).toEqual(NOTHING));
}

function setupOf({ name, place }: TestStore): object {
  const store = place?.() ?? null;
  const server = TEST_SERVERS.find((each) => each.name === name);
  if (!server) return { store };
  // BullMQ does not run on MariaDB.
  return { store, queue: placeOfNotifications(server === MARIADB ? REDIS : server) };
}

afterEach(() => Lanes.killAll());

/**
 * A client of a server keeps a connection that it opened for a lane for ten seconds after the last answer. The connection remembers its
 * first answer.
 */
const CONNECTIONS_ARE_KEPT_MS = 10_500;

/** Runs every scenario in many lanes, then waits until they are idle, and no connection remembers them. */
async function runAndRest(lanes: Lanes, { name }: TestStore): Promise<void> {
  // Clients and the engine keep the first and the last value of a kind. Other marks make these distinguishable.
  await lanes.call('runScenarios', TIMES, 'other');
  expect(await lanes.call('runScenarios', TIMES, 'zebra')).toEqual(ENDS);
  await expectIdle(lanes);
  // A turn's signal is released when the end of the turn is received.
  await eventually(async () => (await lanes.call('listeners')) === 0);
  if (TEST_SERVERS.some((server) => server.name === name)) await delay(CONNECTIONS_ARE_KEPT_MS);
}

/** Waits until no lane has work. A turn that replaced another may still run when its scenario ends. */
async function expectIdle(lanes: Lanes): Promise<void> {
  const list = () => lanes.call('lanes') as Promise<{ lanes: unknown[] }>;
  await eventually(async () => (await list()).lanes.length === 0, { what: 'Whether no lane has work' });
  expect(await list()).toEqual({ mode: 'open', lanes: [] });
}

describe.each(BEHAVIOUR_STORES)('idle lanes: $name', (store) => {
  it('PRF-12 hold nothing in the process that took and ran their turns', async () => {
    const lanes = await Lanes.start({ ...setupOf(store), role: 'both' });
    await runAndRest(lanes, store);
    // This store is in the process, so its contents must be deleted first.
    if (store.name === 'memory') await lanes.call('forgetSessions');
    await expectNothingHeld(lanes);
  }, 120_000);
});

/** MariaDB's notifications would be in Redis, and its store keeps the same objects in one process as in two. */
const WITH_BULLMQ = BEHAVIOUR_STORES.filter(({ name }) => name === 'postgres' || name === 'redis');

for (const store of WITH_BULLMQ) {
  describe(`idle lanes of several processes: ${store.name}`, () => {
    it('PRF-12 hold nothing in the one that took their turns, nor in the one that ran them', async () => {
      const place = setupOf(store);
      const api = await Lanes.start({ ...place, role: 'submit' });
      const worker = await Lanes.start({ ...place, role: 'work' });
      await runAndRest(api, store);
      await expectNothingHeld(api);
      await expectNothingHeld(worker, api);
    }, 120_000);
  });
}
