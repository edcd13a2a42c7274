import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type Benchmark, type Outcome } from './benchmark.js';
import { interleave } from './rounds.js';
import { type Sizes } from './sizes.js';
import { type StartTimes } from './start-program.js';
import { type Stores } from './stores.js';

const PROGRAM = fileURLToPath(new URL('./start-program.js', import.meta.url));
const AT_MOST_MS = 150;

export const prf13: Benchmark = {
  id: 'PRF-13',
  title:
    'Start-up: an application without anything in it, and one with `SessionsModule.forRoot()`, each in a new process',
  stores: ['memory'],
  run,
};

async function run(_: Stores, { rounds, starts }: Sizes): Promise<Outcome> {
  const { empty, sessions } = await interleave(
    { rounds, slices: starts },
    { empty: { run: () => start('empty') }, sessions: { run: () => start('sessions') } },
  );
  const added = sessions.create.map((ms, round) => ms - empty.create[round]);
  return {
    comparisons: [
      {
        what: 'what forRoot() adds to creating the application',
        unit: 'ms',
        base: { name: 'allowed', rounds: added.map(() => AT_MOST_MS) },
        measured: { name: 'ours', rounds: added },
        bound: { atMost: 1 },
      },
      {
        what: 'loading the package, with class-validator, against loading Nest',
        unit: 'ms',
        base: { name: 'Nest', rounds: sessions.nest },
        measured: { name: 'ours', rounds: sessions.sessions },
      },
    ],
  };
}

async function start(kind: 'empty' | 'sessions'): Promise<Readonly<Record<keyof StartTimes, number>>> {
  const child = fork(PROGRAM, [kind]);
  const ended = once(child, 'exit');
  const told = await Promise.race([once(child, 'message'), ended.then(() => null)]);
  await ended;
  if (!told || child.exitCode !== 0) throw new Error('The application did not start, or did not end well.');
  return told[0] as StartTimes;
}
