import progress from 'cli-progress';
import Table from 'cli-table3';
import { type Turn } from 'nestjs-agent-sessions';

export interface Summary {
  readonly sessions: number;
  readonly turns: number;
  readonly messages: number;
  readonly kills: number;
  readonly restarts: number;
  /** The longest time from a kill to the next settled turn of a lane with work. */
  readonly longestStopMs: number;
  /** The longest time in which a lane with work settled no turn. */
  readonly longestWaitMs: number;
  /** The median of these times of all lanes, each at its longest. */
  readonly medianWaitMs: number;
  /** The longest of these times as a multiple of the median, at the kill with the highest multiple. */
  readonly worstWaitRatio: number;
  /** See the function of this name. */
  readonly attemptsRepeated: number;
  readonly stepsRepeated: number;
  readonly seconds: number;
  readonly equal: boolean;
}

/** Counts the attempts that another one followed: they failed, or were lost with a killed worker. */
export function attemptsRepeated(turns: readonly Pick<Turn, 'failures' | 'lost'>[]): number {
  return turns.reduce((sum, { failures, lost }) => sum + failures + lost, 0);
}

/** Shows a progress bar on a terminal, and a line every two seconds otherwise. */
export function progressBar(turns: number): progress.SingleBar {
  const bar = new progress.SingleBar({
    format: '{bar} {value}/{total} turns settled, {kills} kills',
    barCompleteChar: '=',
    barIncompleteChar: '-',
    hideCursor: true,
    noTTYOutput: true,
    notTTYSchedule: 2000,
  });
  bar.start(turns, 0, { kills: 0 });
  return bar;
}

export function summaryTable(summary: Summary): string {
  const { sessions, turns, messages, kills, restarts, stepsRepeated, seconds, equal } = summary;
  const { longestStopMs, longestWaitMs, medianWaitMs, worstWaitRatio } = summary;
  const cells: Readonly<Record<string, string | number>> = {
    sessions,
    turns,
    messages,
    kills,
    restarts,
    'longest stop s': (longestStopMs / 1000).toFixed(1),
    'longest wait s': (longestWaitMs / 1000).toFixed(2),
    'median wait s': (medianWaitMs / 1000).toFixed(2),
    'worst ratio': worstWaitRatio.toFixed(1),
    'attempts repeated': summary.attemptsRepeated,
    'steps repeated': stepsRepeated,
    seconds: seconds.toFixed(1),
    'turns/s': Math.round(turns / seconds),
    result: equal ? 'all equal' : 'DIFFERENT',
  };
  const table = new Table({
    head: Object.keys(cells),
    style: { head: [], border: [], compact: true },
    colAligns: Object.keys(cells).map(() => 'right'),
    wordWrap: true,
  });
  table.push(Object.values(cells));
  return table.toString();
}
