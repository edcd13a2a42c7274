import { TurnReentryError } from '../ledger/turn.errors.js';
import { type AwaitedTurn, type TurnHold, type TurnLedger } from '../ledger/turn.store.js';
import { isTerminal } from '../ledger/turn.js';

/** The running turn of a session waits for another turn. */
interface Edge {
  readonly sessionId: string;
  readonly awaited: AwaitedTurn;
}

/**
 * The turns that one attempt's handler waits for, as stored (FIX-04). A turn is stored before the handler waits for it,
 * and the graph is read after that. If two handlers close a cycle at the same time, at least one of them sees it.
 */
export class AwaitedTurns {
  private turns: readonly AwaitedTurn[] = [];
  private stored: readonly AwaitedTurn[] = this.turns;
  private writing: Promise<void> = Promise.resolve();

  constructor(
    private readonly ledger: TurnLedger,
    private readonly hold: TurnHold,
  ) {}

  /** The turn of the handler. */
  get turnId(): string {
    return this.hold.turnId;
  }

  /** @throws TurnReentryError when the turn cannot end before the handler does; TurnFencedError */
  async add(turn: AwaitedTurn): Promise<void> {
    this.turns = [...this.turns, turn];
    await this.store();
    if (await this.closesCycle(turn)) throw new TurnReentryError(turn.sessionId);
  }

  /**
   * Removes a turn. Call {@link store} after it, unless the turn has ended: ended turns are ignored, and the next write
   * removes it.
   */
  drop(turn: AwaitedTurn): void {
    this.turns = this.turns.filter((other) => other !== turn);
  }

  /** Stores the turns, one write at a time, so that the last one wins. */
  store(): Promise<void> {
    const write = this.writing
      .catch(() => undefined)
      .then(async () => {
        const { turns } = this;
        if (turns === this.stored) return;
        await this.ledger.saveAwaited(this.hold, turns);
        this.stored = turns;
      });
    this.writing = write;
    return write;
  }

  private async closesCycle(turn: AwaitedTurn): Promise<boolean> {
    /** Awaited turns that have ended. */
    const ended = new Set<string>();
    for (;;) {
      const path = await this.pathFrom(turn.sessionId, ended);
      if (!path) return false;
      if (await this.holds(path, ended)) return true;
    }
  }

  /** Returns the path from the session to the handler's own session, with one read per session. */
  private async pathFrom(start: string, ended: ReadonlySet<string>): Promise<Edge[] | null> {
    const paths = new Map<string, Edge[]>([[start, []]]);
    // The loop also visits entries that are added to the map during the iteration.
    for (const [sessionId, path] of paths) {
      if (sessionId === this.hold.sessionId) return path;
      for (const awaited of await this.ledger.awaited(sessionId)) {
        if (ended.has(awaited.turnId) || paths.has(awaited.sessionId)) continue;
        paths.set(awaited.sessionId, [...path, { sessionId, awaited }]);
      }
    }
    return null;
  }

  /**
   * Returns true if the whole path exists at the same time. It was read session by session, and an ended turn remains
   * stored until its handler stores another one.
   */
  private async holds(path: readonly Edge[], ended: Set<string>): Promise<boolean> {
    for (const { sessionId, awaited } of path) {
      const now = await this.ledger.awaited(sessionId);
      if (!now.some(({ turnId }) => turnId === awaited.turnId)) return false;
      // A turn that does not exist yet is about to be accepted.
      const turn = await this.ledger.get(awaited.turnId);
      if (!turn || !isTerminal(turn.status)) continue;
      ended.add(awaited.turnId);
      return false;
    }
    return true;
  }
}
