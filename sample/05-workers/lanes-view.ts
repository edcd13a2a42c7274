import { styleText } from 'node:util';
import Table from 'cli-table3';
import { isTerminal } from 'nestjs-agent-sessions';
import { type Lane } from './lane.js';
import { type TurnView } from './turn-view.js';

const COLOURS = ['cyan', 'magenta', 'yellow', 'green'] as const;
/** The width of the other columns. */
const OTHERS = 54;

export const LEGEND = '1 2 settled by that worker   >1 running there   . queued   * retried';

/** Draws the lanes, with one or two characters per turn. */
export function draw(lanes: readonly Lane[]): string {
  const width = Math.max(12, (process.stdout.columns ?? 100) - OTHERS);
  const table = new Table({
    head: ['session', 'lane', 'held by', 'queued', 'settled', 'order'],
    colWidths: [null, width + 2],
    colAligns: ['left', 'left', 'left', 'right', 'right', 'left'],
    style: { head: [], border: [], compact: true },
  });
  for (const lane of lanes) {
    const queued = lane.turns.filter(({ status }) => status === 'queued').length;
    const order = lane.isInOrder ? 'ok' : 'BROKEN';
    table.push([
      lane.name,
      drawTurns(lane.turns, width),
      lane.running?.worker?.name ?? '-'.repeat(8),
      queued,
      lane.settled,
      order,
    ]);
  }
  return table.toString();
}

/** Returns the latest turns that fit. */
function drawTurns(turns: readonly TurnView[], width: number): string {
  const drawn: string[] = [];
  let room = width;
  for (const turn of turns.toReversed()) {
    const text = symbolOf(turn);
    room -= text.length;
    if (room < 0) break;
    drawn.unshift(paint(turn, text));
  }
  return drawn.join('');
}

function symbolOf(turn: TurnView): string {
  const mark = turn.failures + turn.lost > 0 ? '*' : '';
  if (turn.status === 'running') return `${mark}>${workerOf(turn)}`;
  if (!isTerminal(turn.status)) return `${mark}.`;
  return turn.doneBy.length > 0 ? mark + workerOf(turn) : 'X';
}

function paint(turn: TurnView, text: string): string {
  const colour = COLOURS[Number(workerOf(turn)) % COLOURS.length];
  return process.stdout.isTTY && colour ? styleText(colour, text) : text;
}

/** Returns the digits of `worker 2`. */
function workerOf({ worker, doneBy }: TurnView): string {
  return /\d+/.exec(worker?.name ?? doneBy.at(-1) ?? '')?.[0] ?? '?';
}
