import { type ChildProcess, fork } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { placeOfRings } from '../support/bullmq.js';
import { eventually } from '../support/eventually.js';
import { FAST_PLACE } from '../support/fast-place.js';
import { Heap } from '../support/heap.js';
import {
  describePostgres,
  describeRedis,
  MARIADB,
  POSTGRES,
  REDIS,
  TEST_SERVERS,
  type TestServer,
} from '../support/servers.js';
import { serverStore, sqliteOptions, temporaryFolder } from '../support/stores.js';

const PROGRAM = join(import.meta.dirname, 'fixtures/lanes.mjs');
const TIMES = 5;

/** What becomes of the stories in fixtures/lanes.mjs. */
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

/** What there is of a turn only while something of it goes on. */
const OF_TURNS = [
  'TurnAttempt',
  'TurnSteps',
  'TurnEventWriter',
  'TurnEventFeed',
  'Parked',
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
    const child = fork(PROGRAM, [JSON.stringify(setup)], { execArgv: [] });
    this.running.add(child);
    const lanes = new Lanes(child);
    await once(lanes.answers, '0');
    return lanes;
  }

  static async killAll(): Promise<void> {
    const ends = [...this.running].map(async (child) => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    });
    this.running.clear();
    await Promise.all(ends);
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

  /** What it still knows of lanes that are idle. */
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
 * What was told to let go does so in a moment; a client's connection that was opened for a lane remembers its first answer until it
 * is closed, ten seconds after its last one, and BullMQ the last job.
 */
async function expectNothingHeld(lanes: Lanes, api = lanes): Promise<void> {
  let held = {};
  const holdsNothing = async (): Promise<boolean> => {
    await api.call('rest');
    held = await lanes.held();
    return isDeepStrictEqual(held, NOTHING);
  };
  // A look at the whole heap takes the machine from the other tests, and those ten seconds are over at the second one.
  await eventually(holdsNothing, { limitMs: 40_000, everyMs: 11_000 }).catch(() => expect(held).toEqual(NOTHING));
}

const SETUPS = [
  { name: 'memory', setup: () => ({ store: null }) },
  { name: 'sqlite', setup: () => ({ store: sqliteOptions() }) },
  ...TEST_SERVERS.map((server) => ({ name: server.name, setup: () => setupOn(server) })),
];

function setupOn(server: TestServer) {
  const store = serverStore(server).place?.();
  // BullMQ knows no MariaDB.
  return { store, queue: placeOfRings(server === MARIADB ? REDIS : server) };
}

afterEach(() => Lanes.killAll());

/** Much happens to many lanes; then nothing. */
async function playAndRest(lanes: Lanes): Promise<void> {
  // Clients and the engine remember the first of a kind, and the last: here these are others.
  await lanes.call('play', TIMES, 'other');
  expect(await lanes.call('play', TIMES, 'zebra')).toEqual(ENDS);
  await expectIdle(lanes);
  // A turn's signal is let go when it is heard that the turn has ended.
  await eventually(async () => (await lanes.call('listeners')) === 0);
}

/** What took another's place may still run when its story ends. */
async function expectIdle(lanes: Lanes): Promise<void> {
  const list = () => lanes.call('lanes') as Promise<{ lanes: unknown[] }>;
  await eventually(async () => (await list()).lanes.length === 0, { what: 'That no lane has work' });
  expect(await list()).toEqual({ mode: 'open', lanes: [] });
}

describe.each(SETUPS)('idle lanes: $name', ({ name, setup }) => {
  it('PRF-12 hold nothing in the process that took and ran their turns', async () => {
    const lanes = await Lanes.start({ ...setup(), role: 'both' });
    await playAndRest(lanes);
    // This store is the process itself, so what it holds must go first.
    if (name === 'memory') await lanes.call('forgetSessions');
    await expectNothingHeld(lanes);
  }, 120_000);
});

// MariaDB's rings would be in Redis, and its store holds in one process what it holds in two.
describePostgres('idle lanes of several processes: postgres', () => holdNothing(POSTGRES));
describeRedis('idle lanes of several processes: redis', () => holdNothing(REDIS));

function holdNothing(server: TestServer): void {
  it('PRF-12 hold nothing in the one that took their turns, nor in the one that ran them', async () => {
    const place = setupOn(server);
    const api = await Lanes.start({ ...place, role: 'submit' });
    const worker = await Lanes.start({ ...place, role: 'work' });
    await playAndRest(api);
    await expectNothingHeld(api);
    await expectNothingHeld(worker, api);
  }, 120_000);
}
