/** Measures how long lanes with work stall after a kill. */
export class LaneWatch {
  private readonly open = new Map<string, number>();
  private readonly killedAt = new Map<string, number>();
  private longest = 0;

  /** The longest time in milliseconds from a kill to the next settled turn of a lane. */
  get longestMs(): number {
    return this.longest;
  }

  submitted(lane: string): void {
    this.open.set(lane, (this.open.get(lane) ?? 0) + 1);
  }

  settled(lane: string): void {
    this.open.set(lane, (this.open.get(lane) ?? 0) - 1);
    const killedAt = this.killedAt.get(lane);
    if (killedAt !== undefined) this.longest = Math.max(this.longest, performance.now() - killedAt);
    this.killedAt.delete(lane);
  }

  /** Any lane with work may belong to the killed worker. */
  killed(): void {
    for (const [lane, turns] of this.open) {
      if (turns > 0 && !this.killedAt.has(lane)) this.killedAt.set(lane, performance.now());
    }
  }
}
