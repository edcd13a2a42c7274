/** How long lanes with work waited for their next settled turn, each lane at its longest. Milliseconds. */
export interface LaneWaits {
  readonly longestMs: number;
  readonly medianMs: number;
}

/** Measures how long lanes with work wait for their next settled turn: over the whole run, and from a kill on. */
export class LaneWatch {
  private readonly open = new Map<string, number>();
  private readonly killedAt = new Map<string, number>();
  /** When the present wait of each lane with work began. */
  private readonly waitingSince = new Map<string, number>();
  /** The longest wait of each lane that has ended. */
  private readonly longestWaits = new Map<string, number>();
  private longest = 0;
  private worst = 0;

  /** The longest time in milliseconds from a kill to the next settled turn of a lane. */
  get longestMs(): number {
    return this.longest;
  }

  /** The longest wait of a lane as a multiple of the median: the maximum of all kills so far (FIX-83). 0 without a kill. */
  get worstRatio(): number {
    return this.worst;
  }

  /** Returns the waits so far, including those that have not ended. */
  waits(): LaneWaits {
    const now = performance.now();
    const waits = [...this.open.keys()]
      .map((lane) => Math.max(this.longestWaits.get(lane) ?? 0, now - (this.waitingSince.get(lane) ?? now)))
      .sort((a, b) => a - b);
    return { longestMs: waits.at(-1) ?? 0, medianMs: waits[Math.floor(waits.length / 2)] ?? 0 };
  }

  submitted(lane: string): void {
    const open = this.open.get(lane) ?? 0;
    if (open === 0) this.waitingSince.set(lane, performance.now());
    this.open.set(lane, open + 1);
  }

  settled(lane: string): void {
    const now = performance.now();
    const open = (this.open.get(lane) ?? 0) - 1;
    this.open.set(lane, open);
    const waited = now - (this.waitingSince.get(lane) ?? now);
    this.longestWaits.set(lane, Math.max(this.longestWaits.get(lane) ?? 0, waited));
    if (open > 0) this.waitingSince.set(lane, now);
    else this.waitingSince.delete(lane);
    const killedAt = this.killedAt.get(lane);
    if (killedAt !== undefined) this.longest = Math.max(this.longest, now - killedAt);
    this.killedAt.delete(lane);
  }

  /** Any lane with work may belong to the killed worker. */
  killed(): void {
    for (const [lane, turns] of this.open) {
      if (turns > 0 && !this.killedAt.has(lane)) this.killedAt.set(lane, performance.now());
    }
    const { longestMs, medianMs } = this.waits();
    if (medianMs > 0) this.worst = Math.max(this.worst, longestMs / medianMs);
  }
}
