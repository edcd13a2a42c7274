import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Heap } from '../test/support/heap.js';
import { type Benchmark, type Comparison, type Curve, type Outcome } from './benchmark.js';
import { WrongAnswerError } from './wrong-answer.error.js';
import { HostProcess } from './host-process.js';
import { KINDS, type MemoryHost, type MemoryUse } from './memory-host.js';
import { openPlace, type Remains } from './memory-place.js';
import { type Sizes } from './sizes.js';
import { type Stores } from './stores.js';

/** A leak of three hundred bytes per turn. When the memory returns to the system is not deterministic. */
const RSS_AT_MOST = 1.1;
/** A leak of thirty bytes per turn. */
const HEAP_AT_MOST = 1.05;
/** The number of samples at the start, and at the end. */
const WINDOW = 3;
/** Clients and the engine keep the first and the last of a kind, so these belong to other sessions. */
const OTHERS = 10;

export const prf12: Benchmark = {
  id: 'PRF-12',
  title: 'Memory: 100,000 turns over 1,000 sessions in one process that takes and runs them',
  stores: ['sqlite', 'postgres', 'redis'],
  run,
};

interface Sample extends MemoryUse, Remains {
  /** The number of turns so far. */
  readonly turns: number;
}

async function run({ name }: Stores, { memory }: Sizes): Promise<Outcome> {
  const { sessions } = memory;
  const turns = memory.samples * KINDS.length;
  const at = await openPlace(name);
  const host = new HostProcess<MemoryHost>('./memory-program.js');
  const samples: Sample[] = [];
  try {
    await host.call('open', at.place);
    await host.call('prepare', 'other', OTHERS);
    await host.call('prepare', 'own', sessions);
    await host.call('runTurns', 'other', OTHERS, 0, KINDS.length);
    for (let from = 0; from < turns; from += KINDS.length) {
      await host.call('runTurns', 'own', sessions, from, KINDS.length);
      const used = await host.call('measure');
      const { queue, lanes } = await at.count();
      // A count of the wrong keys would be constant, too.
      if (lanes < sessions) throw new WrongAnswerError(`${lanes} keys or rows of ${sessions} sessions.`);
      samples.push({ turns: sessions * (from + KINDS.length), ...used, queue, lanes });
    }
    await host.call('runTurns', 'other', OTHERS, KINDS.length, KINDS.length);
    const left = await idsIn(host);
    await host.call('verify', 'own', sessions, turns);
    await host.call('close');
    return outcome(samples, memory.warmUp, sessions * (turns + 1), left, at.parts);
  } finally {
    await host.stop();
    await at.close();
  }
}

/** Counts ids of sessions and turns anywhere in the process. */
async function idsIn(host: HostProcess<MemoryHost>): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-heap-'));
  try {
    const file = join(folder, 'idle.heapsnapshot');
    await host.call('writeHeap', file);
    return Heap.read(file).texts(/\bown-(lane|turn)-\d+/g).length;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function outcome(samples: readonly Sample[], warmUp: number, ids: number, left: number, parts: number): Outcome {
  const begun = samples.slice(warmUp, warmUp + WINDOW);
  const ended = samples.slice(-WINDOW);
  const compare = (what: string, unit: Comparison['unit'], of: keyof Sample, atMost: number): Comparison => ({
    what,
    unit,
    base: { name: after(begun), rounds: begun.map((sample) => sample[of]) },
    measured: { name: after(ended), rounds: ended.map((sample) => sample[of]) },
    bound: { atMost },
  });
  const curve = (what: string, of: 'rss' | 'heap'): Curve => ({
    what,
    unit: 'bytes',
    by: 'turns that have run',
    points: samples.map((sample) => ({ size: sample.turns, rounds: [sample[of]] })),
  });
  return {
    comparisons: [
      compare('resident memory', 'bytes', 'rss', RSS_AT_MOST),
      compare('heap after a collection', 'bytes', 'heap', HEAP_AT_MOST),
      compare('keys or rows of the queue', 'entries', 'queue', 1),
      compare('keys or rows of sessions and lanes', 'entries', 'lanes', 1),
      {
        what: 'ids of sessions and turns in the heap, all lanes idle',
        unit: 'entries',
        base: { name: 'lasting parts of clients', rounds: [parts] },
        measured: { name: `left of ${ids.toLocaleString('en')}`, rounds: [left] },
        bound: { atMost: 1 },
      },
    ],
    curves: [curve('resident memory', 'rss'), curve('heap after a collection', 'heap')],
  };
}

function after(samples: readonly Sample[]): string {
  const [first, last] = [samples[0], samples[samples.length - 1]].map(({ turns }) => turns.toLocaleString('en'));
  return `${first} to ${last} turns`;
}
