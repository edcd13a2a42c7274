import { TurnReentryError } from '../ledger/turn.errors.js';
import { type AwaitedTurn, type TurnHold, type TurnLedger } from '../ledger/turn.store.js';
import { isTerminal } from '../ledger/turn.js';

/** That the running turn of a session waits for another turn. */
interface Edge {
  readonly sessionId: string;
  readonly awaited: AwaitedTurn;
}

/**
 * The turns that one attempt's handler waits for, as the store keeps them (FIX-04). A turn is stored before the handler waits
 * for it, and the graph is read after that: of two handlers that close a cycle at once, at least one sees it.
 */
export class AwaitedTurns {
  private turns: readonly AwaitedTurn[] = [];
  private stored: readonly AwaitedTurn[] = this.turns;
  private writing: Promise<void> = Promise.resolve();

  constructor(
    private readonly ledger: TurnLedger,
    private readonly hold: TurnHold,
  ) {}

  /** @throws TurnReentryError when the turn cannot end before the handler does; TurnFencedError */
  async add(turn: AwaitedTurn): Promise<void> {
    this.turns = [...this.turns, turn];
    await this.store();
    if (await this.closesCycle(turn)) throw new TurnReentryError(turn.sessionId);
  }

  /** Follow with {@link store}, unless the turn has ended: it then counts no longer, and the next write leaves it out. */
  drop(turn: AwaitedTurn): void {
    this.turns = this.turns.filter((other) => other !== turn);
  }

  /** One write at a time, so that the store ends up with the last one. */
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

  /** What leads from the session to the handler's own one, one read a session. */
  private async pathFrom(start: string, ended: ReadonlySet<string>): Promise<Edge[] | null> {
    const paths = new Map<string, Edge[]>([[start, []]]);
    // A map is iterated over what is added meanwhile.
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
   * Whether all of the path held at one moment: it was read one session after the other, and a turn that has ended stays
   * stored until its handler stores something else.
   */
  private async holds(path: readonly Edge[], ended: Set<string>): Promise<boolean> {
    for (const { sessionId, awaited } of path) {
      const now = await this.ledger.awaited(sessionId);
      if (!now.some(({ turnId }) => turnId === awaited.turnId)) return false;
      // One that is not there is about to be accepted.
      const turn = await this.ledger.get(awaited.turnId);
      if (!turn || !isTerminal(turn.status)) continue;
      ended.add(awaited.turnId);
      return false;
    }
    return true;
  }
}
