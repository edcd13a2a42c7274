/** How long lanes with work stand still after a worker was killed. */
export class LaneWatch {
  private readonly open = new Map<string, number>();
  private readonly killedAt = new Map<string, number>();
  private longest = 0;

  /** Milliseconds from a kill to the next settled turn of a lane, at most. */
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

  /** Any lane that has work may be one of the killed worker's. */
  killed(): void {
    for (const [lane, turns] of this.open) {
      if (turns > 0 && !this.killedAt.has(lane)) this.killedAt.set(lane, performance.now());
    }
  }
}
