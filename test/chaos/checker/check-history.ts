import { type TurnStatus } from 'nestjs-agent-sessions';
import { type Entry, type StoreContents } from '../history/history.js';
import { accepted } from './rules/accepted.js';
import { checkpoints } from './rules/checkpoints.js';
import { events } from './rules/events.js';
import { fences } from './rules/fences.js';
import { handlers } from './rules/handlers.js';
import { idle } from './rules/idle.js';
import { losses } from './rules/losses.js';
import { messages } from './rules/messages.js';
import { order } from './rules/order.js';
import { progress } from './rules/progress.js';
import { scripts } from './rules/scripts.js';
import { settledOnce } from './rules/settled-once.js';
import { signals } from './rules/signals.js';
import { steps } from './rules/steps.js';
import { suspects } from './rules/suspects.js';
import { tools } from './rules/tools.js';
import { type Run } from './run.js';
import { longestStalls } from './stalls.js';
import { toRun } from './to-run.js';

export interface Limits {
  /** Maximum time that a lane with work may make no progress. */
  readonly stallMs: number;
  /** The lease of a claim or a renewal. Null skips its rules. */
  readonly leaseMs: number | null;
  /** Number of lost attempts that fail a turn. Null skips its rules. */
  readonly maxLost: number | null;
}

export interface Verdict extends Counts {
  readonly violations: readonly Violation[];
  /** The longest time without progress of a lane with work. */
  readonly longestStallMs: number;
}

export interface Violation {
  readonly rule: RuleName;
  /** Names sessions, turns, fences and processes, and times as the `at` of history lines. */
  readonly message: string;
}

/** The size of the checked run. */
export interface Counts {
  readonly sessions: number;
  /** Number of turns in the ledger. */
  readonly turns: number;
  readonly turnsByStatus: Readonly<Partial<Record<TurnStatus, number>>>;
  readonly claims: number;
  /** Number of handlers that started. */
  readonly attempts: number;
  /** Number of executed steps. */
  readonly effects: number;
  /** Number of tool uses in all attempts. */
  readonly uses: number;
  /** Number of events that readers received. */
  readonly events: number;
  readonly calls: number;
  /** Number of calls with unknown outcome. */
  readonly unknownCalls: number;
  readonly faults: number;
  /** Number of processes that a handler killed. */
  readonly crashes: number;
}

export type RuleName = keyof ReturnType<typeof rulesFor>;

const DEFAULT_LIMITS: Limits = { stallMs: 15_000, leaseMs: null, maxLost: null };

/**
 * Decides whether the observations of the processes and the contents of the store are consistent with the guarantees of
 * the package. Faults (calls without an answer, killed processes) are not violations.
 * @throws Error if the history is invalid
 */
export function checkHistory(
  entries: readonly Entry[],
  contents: StoreContents,
  limits: Partial<Limits> = {},
): Verdict {
  const run = toRun(entries, contents);
  const stalls = longestStalls(run);
  const rules = rulesFor({ ...DEFAULT_LIMITS, ...limits }, stalls);
  const violations = (Object.keys(rules) as RuleName[]).flatMap((rule) =>
    [...rules[rule](run)].map((message) => ({ rule, message })),
  );
  const longestStallUs = Math.max(0, ...stalls.map(({ lengthUs }) => lengthUs));
  return { violations, longestStallMs: Math.round(longestStallUs / 1000), ...countsOf(run) };
}

function rulesFor({ stallMs, leaseMs, maxLost }: Limits, stalls: ReturnType<typeof longestStalls>) {
  return {
    accepted,
    'settled once': settledOnce,
    order,
    fences: (run: Run) => fences(run, leaseMs),
    handlers,
    losses: (run: Run) => losses(run, maxLost),
    suspects,
    checkpoints,
    messages,
    scripts,
    steps,
    tools,
    events,
    signals,
    idle,
    progress: () => progress(stalls, stallMs),
  };
}

function countsOf(run: Run): Counts {
  const turns = [...run.turns.values()];
  const stored = turns.flatMap((turn) => turn.stored ?? []);
  return {
    sessions: run.contents.sessions.length,
    turns: stored.length,
    turnsByStatus: tally(stored.map(({ status }) => status)),
    claims: sum(turns.map(({ grants }) => grants.length)),
    attempts: sum(turns.map(({ attempts }) => attempts.length)),
    effects: sum(turns.map(({ effects }) => effects.length)),
    uses: sum(turns.map(({ uses }) => uses.length)),
    events: sum(turns.flatMap(({ readers }) => [...readers.values()].map((given) => given.length))),
    calls: run.calls.length,
    unknownCalls: run.calls.filter(({ outcome }) => outcome === 'unknown').length,
    faults: run.faults,
    crashes: run.crashes,
  };
}

function tally(statuses: readonly TurnStatus[]): Partial<Record<TurnStatus, number>> {
  const counts: Partial<Record<TurnStatus, number>> = {};
  for (const status of statuses) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
