const KEEP_AT_MOST = 10_000;

/**
 * The `context` that callers of this process gave with their turns, until the turn's last attempt here. Never stored:
 * an attempt elsewhere, or after a restart, does without (BOT-02).
 */
export class TurnContexts {
  private readonly kept = new Map<string, Readonly<Record<string, unknown>>>();

  keep(turnId: string, context: Record<string, unknown>): void {
    this.kept.set(turnId, Object.freeze({ ...context }));
    // Turns that ran in another process are never dropped here; the oldest make room.
    for (const oldest of this.kept.keys()) {
      if (this.kept.size <= KEEP_AT_MOST) break;
      this.kept.delete(oldest);
    }
  }

  get(turnId: string): Readonly<Record<string, unknown>> | undefined {
    return this.kept.get(turnId);
  }

  drop(turnId: string): void {
    this.kept.delete(turnId);
  }
}
