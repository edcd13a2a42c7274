import { type Claim } from '../../history/history.js';
import { heldBy, type SimulatedProcess, SimulatedRun } from './simulated-run.js';
import { LEASE_US } from './simulated-store.js';
import { type Recorded } from './scripted-run.js';

export const MAX_LOST = 5;

/** A claim and its handler. */
type Running = readonly [claim: Claim, attempt: string];

/**
 * Returns a run in which the turn of key `k1` kills each process that runs it. Key `k2` waits behind it. `i1` and `i2` run beside it
 * twice and become suspects; `i3` runs beside the suspect `k1` and is lost once.
 */
export function culpritRun(): Recorded {
  const run = new SimulatedRun(MAX_LOST);
  const client = run.process('client-1');
  const { turnId } = client.call('submit', { sessionId: 'culprit', key: 'k1', whenBusy: 'enqueue' });
  run.store.instruct(turnId, { fails: false, crashAfterMs: 0 });
  client.call('submit', { sessionId: 'one', key: 'i1', whenBusy: 'enqueue' });
  client.call('submit', { sessionId: 'two', key: 'i2', whenBusy: 'enqueue' });
  client.call('submit', { sessionId: 'culprit', key: 'k2', whenBusy: 'enqueue' });

  crash(run, 'worker-1.1', ['one', 'two']);
  crash(run, 'worker-1.2', ['one', 'two']);
  const third = run.process('worker-1.3');
  settle(third, begin(third, 'one'), 'i1');
  settle(third, begin(third, 'two'), 'i2');
  client.call('submit', { sessionId: 'three', key: 'i3', whenBusy: 'enqueue' });
  crash(run, 'worker-1.3', ['three']);
  settleAfter(run, 'worker-1.4', 'three', 'i3');
  crash(run, 'worker-1.4', []);
  crash(run, 'worker-1.5', []);
  settleAfter(run, 'worker-1.6', 'culprit', 'k2');

  return run.finish();
}

/** Runs these sessions beside the culprit, which kills the process. Their leases lapse. */
function crash(run: SimulatedRun, name: string, beside: readonly string[]): void {
  const worker = run.process(name);
  for (const sessionId of beside) begin(worker, sessionId);
  worker.crash(...begin(worker, 'culprit'));
  run.pass(LEASE_US);
}

function begin(worker: SimulatedProcess, sessionId: string): Running {
  const claim = worker.claim(sessionId);
  return [claim, worker.begin(claim)];
}

function settle(worker: SimulatedProcess, [claim, attempt]: Running, key: string): void {
  worker.end(claim, attempt);
  worker.call('settle', { ...heldBy(claim), status: 'awaiting-input', text: `${key} ${attempt}` });
}

function settleAfter(run: SimulatedRun, name: string, sessionId: string, key: string): void {
  const worker = run.process(name);
  settle(worker, begin(worker, sessionId), key);
}
