import { type Lane } from './lane.js';
import { type TurnView } from './turn-view.js';

const FIRST_KILL_MS = 1000;
const KILL_EVERY_MS = 4000;

interface OrphanedLane {
  readonly lane: Lane;
  readonly turn: TurnView;
  readonly pid: number;
  readonly since: number;
}

/** Kills workers during their turns, and measures the time until their lanes continue. */
export class Killer {
  private readonly killed = new Set<number>();
  private nextAt = performance.now() + FIRST_KILL_MS;
  private orphaned: readonly OrphanedLane[] = [];
  /** How long lanes were interrupted, in milliseconds. */
  readonly takeOvers: number[] = [];

  constructor(private readonly kill: boolean) {}

  get kills(): number {
    return this.killed.size;
  }

  /** Call this after each read of the lanes. */
  update(lanes: readonly Lane[]): void {
    this.orphaned = this.orphaned.filter((orphan) => {
      const isHeld = isHeldBy(orphan.pid, orphan.lane.turns[orphan.turn.position - 1]);
      if (!isHeld) this.takeOvers.push(performance.now() - orphan.since);
      return isHeld;
    });
    if (this.kill && performance.now() >= this.nextAt) this.killOne(lanes);
  }

  private killOne(lanes: readonly Lane[]): void {
    const pids = lanes.flatMap(({ running }) => running?.worker?.pid ?? []).filter((pid) => !this.killed.has(pid));
    if (pids.length === 0) return;
    const pid = pids[Math.floor(Math.random() * pids.length)];
    process.kill(pid, 'SIGKILL');
    this.killed.add(pid);
    this.nextAt = performance.now() + KILL_EVERY_MS;
    const held = lanes.flatMap((lane) => {
      const { running: turn } = lane;
      return turn && isHeldBy(pid, turn) ? [{ lane, turn, pid, since: performance.now() }] : [];
    });
    this.orphaned = [...this.orphaned, ...held];
  }
}

function isHeldBy(pid: number, turn: TurnView): boolean {
  return turn.status === 'running' && turn.worker?.pid === pid;
}
