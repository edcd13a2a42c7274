import { type Entry } from '../history/history.js';
import { type Interval, type ProcessRun } from './run.js';

type Draft = { -readonly [Key in keyof ProcessRun]: ProcessRun[Key] } & {
  frozen: Interval[];
  stoppedAt: number | null;
};

/** Collects the faults of each process, and its last entry. */
export function toProcesses(entries: readonly Entry[]): ReadonlyMap<string, ProcessRun> {
  const processes = new Map<string, Draft>();
  const of = (name: string): Draft => {
    const process = processes.get(name) ?? { frozen: [], endsAt: 0, stoppedAt: null };
    processes.set(name, process);
    return process;
  };
  for (const { process, at } of entries) of(process).endsAt = Math.max(of(process).endsAt, at);

  const killed = new Map<string, number>();
  for (const entry of [...entries].sort((a, b) => a.at - b.at)) {
    if (entry.type !== 'note' || entry.what !== 'fault') continue;
    const { fault, target, at } = entry;
    const process = of(target);
    if (fault === 'kill') killed.set(target, at);
    if (fault === 'stop') process.stoppedAt ??= at;
    if (fault !== 'continue' || process.stoppedAt === null) continue;
    process.frozen.push({ from: process.stoppedAt, to: at });
    process.stoppedAt = null;
  }
  for (const [name, process] of processes) {
    if (process.stoppedAt !== null) process.frozen.push({ from: process.stoppedAt, to: Infinity });
    process.endsAt = Math.min(process.endsAt, killed.get(name) ?? Infinity);
  }
  return processes;
}
