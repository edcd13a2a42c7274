import { type Claim, type Entry, type StoreContents } from '../../history/history.js';
import { heldBy, type SimulatedProcess, SimulatedRun, Unanswered } from './simulated-run.js';
import { LEASE_US, Refused } from './simulated-store.js';

export interface Recorded {
  readonly entries: Entry[];
  readonly contents: StoreContents;
}

/**
 * Returns a correct run with many external faults, which the history checker must accept. By session:
 *
 * - `retried`: key `a1` fails once after it used a tool; `a2` is handed over to `worker-1`, which is killed; `worker-2` ends it
 * - `stopped`: `b1` waits for a signal; `b2` is superseded by `b3`, which `b4` interrupts; `b4` fails; `b5` is cancelled in the queue
 * - `frozen`: `c1` is sent twice; `worker-3` is frozen with it, and `worker-2` takes it over; the answer to its settle is lost
 */
export function scriptedRun(): Recorded {
  const run = new SimulatedRun();
  const client = run.process('client-1');
  const [worker1, worker2, worker3] = ['worker-1', 'worker-2', 'worker-3'].map((name) => run.process(name));
  retried(run, client, worker1, worker2);
  stopped(run, client, worker2);
  frozen(run, client, worker2, worker3);
  run.pass(1_000_000);
  run.fault('terminate', 'worker-2');
  return run.finish();
}

function retried(
  run: SimulatedRun,
  client: SimulatedProcess,
  worker1: SimulatedProcess,
  worker2: SimulatedProcess,
): void {
  const sessionId = 'retried';
  const { turnId } = client.call('submit', { sessionId, key: 'a1', whenBusy: 'enqueue' });
  client.call('submit', { sessionId, key: 'a2', whenBusy: 'enqueue' });

  const first = worker1.claim(sessionId);
  const failing = worker1.begin(first);
  worker1.step(first, failing, 'look up');
  worker1.use(first, failing, 0, { tool: 'look', tokens: 10 });
  worker1.call('append', { ...heldBy(first), number: 1, count: 2 });
  worker1.end(first, failing);
  worker1.call('retry', heldBy(first));
  run.pass(100_000);

  const second = worker1.claim(sessionId);
  const succeeding = worker1.begin(second);
  worker1.step(second, succeeding, 'pay out');
  worker1.use(second, succeeding, 0, { tool: 'look', tokens: 10 });
  worker1.use(second, succeeding, 1, { tool: 'drop', tokens: 20 });
  worker1.call('append', { ...heldBy(second), number: 1, count: 1 });
  worker1.end(second, succeeding);
  const a2 = settle(worker1, second, 'a1', succeeding);
  read(run, client, turnId, 'reader-1');
  client.call('result', { turnId });

  const killed = worker1.begin(a2);
  worker1.step(a2, killed, 'look up');
  worker1.use(a2, killed, 0, { tool: 'ask', tokens: 40 });
  run.note(worker1.name, { what: 'step', turnId: a2.turnId, attempt: killed, step: 'pay out' });
  attempt(() => worker1.call('saveStep', { ...heldBy(a2), step: 'pay out', value: killed }, 'missed'));
  run.fault('kill', worker1.name);
  run.pass(LEASE_US);

  const taken = worker2.claim(sessionId);
  const again = worker2.begin(taken);
  worker2.step(taken, again, 'pay out');
  worker2.use(taken, again, 0, { tool: 'ask', tokens: 40 });
  worker2.end(taken, again);
  settle(worker2, taken, 'a2', again);
}

function stopped(run: SimulatedRun, client: SimulatedProcess, worker: SimulatedProcess): void {
  const sessionId = 'stopped';
  const submit = (key: string, whenBusy: 'enqueue' | 'latest' | 'interrupt'): string =>
    client.call('submit', { sessionId, key, whenBusy }).turnId;

  const b1 = submit('b1', 'enqueue');
  const suspended = worker.claim(sessionId);
  const waiting = worker.begin(suspended);
  worker.call('wait', { ...heldBy(suspended), signal: 'go' });
  worker.end(suspended, waiting, 'abort');
  // Longer than the stall limit without an outage.
  run.pass(60_000_000);
  client.call('signal', { turnId: b1, name: 'go', payload: 'yes' });
  client.call('signal', { turnId: b1, name: 'go', payload: 'no' });
  const resumed = worker.claim(sessionId);
  const going = worker.begin(resumed);
  submit('b2', 'enqueue');
  const b3 = submit('b3', 'latest');
  worker.call('renew', heldBy(resumed));
  worker.end(resumed, going);
  const third = settle(worker, resumed, 'b1', going);

  const interrupted = worker.begin(third);
  worker.use(third, interrupted, 0, { tool: 'ask', tokens: 80 });
  submit('b4', 'interrupt');
  worker.end(third, interrupted, 'abort');
  const fourth = settle(worker, third, null, interrupted, 'cancelled');
  client.call('result', { turnId: b3 });

  const failing = worker.begin(fourth);
  worker.use(fourth, failing, 0, { tool: 'ask', tokens: 160 });
  const b5 = submit('b5', 'enqueue');
  client.call('cancel', { turnId: b5, mode: 'cancel' });
  worker.end(fourth, failing);
  worker.call('settle', { ...heldBy(fourth), status: 'failed', text: null });
}

function frozen(
  run: SimulatedRun,
  client: SimulatedProcess,
  worker2: SimulatedProcess,
  worker3: SimulatedProcess,
): void {
  const sessionId = 'frozen';
  const message = { sessionId, key: 'c1', whenBusy: 'enqueue' } as const;
  attempt(() => client.call('submit', message, 'lost'));
  const { turnId } = client.call('submit', message);
  const lost = worker3.claim(sessionId);
  const zombie = worker3.begin(lost);
  run.fault('stop', worker3.name);
  run.pass(LEASE_US);

  const taken = worker2.claim(sessionId);
  const current = worker2.begin(taken);
  worker2.step(taken, current, 'pay out');
  run.pass(600_000);
  run.fault('continue', worker3.name);
  run.note(worker3.name, { what: 'step', turnId, attempt: zombie, step: 'pay out' });
  attempt(() => worker3.call('saveStep', { ...heldBy(lost), step: 'pay out', value: zombie }));
  worker3.end(lost, zombie, 'abort');

  worker2.end(taken, current);
  const settlement = { ...heldBy(taken), status: 'completed', text: `c1 ${current}` } as const;
  attempt(() => worker2.call('settle', settlement, 'lost'));
  worker2.call('settle', settlement);
  attempt(() => worker2.call('claim', { sessionId }, 'missed'));
}

/** @returns the turn that the settle hands over */
function settle(
  worker: SimulatedProcess,
  claim: Claim,
  key: string | null,
  attempt: string,
  status: 'awaiting-input' | 'cancelled' = 'awaiting-input',
): Claim {
  const text = key === null ? null : `${key} ${attempt}`;
  const { next } = worker.call('settle', { ...heldBy(claim), status, text });
  return next ?? claim;
}

function read(run: SimulatedRun, client: SimulatedProcess, turnId: string, reader: string): void {
  for (let offset = 0; ; offset += 1) {
    const event = run.store.read(turnId, offset);
    if (!event) return;
    run.note(client.name, { what: 'event', turnId, reader, ...event });
    run.pass(100);
  }
}

/** The call may have no effect. */
function attempt(call: () => unknown): void {
  try {
    call();
  } catch (error) {
    if (!(error instanceof Refused) && !(error instanceof Unanswered)) throw error;
  }
}
