import { type SessionsAdapter } from 'nestjs-agent-sessions';
import { type ClaimedTurn, type ClaimRequest, type TurnHold } from 'nestjs-agent-sessions/adapter';
import { expectSame, WrongAnswerError } from './wrong-answer.error.js';
import { ORCHESTRATOR, VERSION } from './population.js';
import { words } from './text.js';

/** Equal to `historyWindow` and `keepCheckpoints` of an orchestrator. */
const WINDOW = 20;
const KEEP_CHECKPOINTS = 100;
const LEASE_MS = 600_000;

export interface Payload {
  /** The size of the checkpoint's state. */
  readonly checkpointBytes: number;
  /** The size of each of a turn's two messages. */
  readonly messageBytes: number;
}

export const SMALL: Payload = { checkpointBytes: 250, messageBytes: 60 };

/** Runs the turns of one session through the ports, and checks every answer of the store. */
export class Conversation {
  /** Accepted turns that have not settled. */
  private open = 0;
  private readonly accepted: string[] = [];

  /**
   * @param turns the number of turns in the session so far
   * @param messages the number of messages in its log so far; default: two per turn
   */
  constructor(
    private readonly adapter: SessionsAdapter,
    readonly sessionId: string,
    private turns = 0,
    private messages = 2 * turns,
    private readonly payload = SMALL,
  ) {}

  static async start(adapter: SessionsAdapter, sessionId: string, payload?: Payload): Promise<Conversation> {
    const now = new Date().toISOString();
    await adapter.sessions.insert({
      id: sessionId,
      userId: 'somebody',
      state: 'created',
      createdAt: now,
      lastActivityAt: now,
      attachedSurfaces: [],
      metadata: {},
      version: 1,
    });
    return new Conversation(adapter, sessionId, 0, 0, payload);
  }

  /** @param claim whether to claim the turn if the lane is idle. @returns `null` if the turn was not claimed */
  async accept(claim = false): Promise<TurnHold | null> {
    const index = this.turns + this.open;
    const { turn, claimed } = await this.adapter.turns.accept({
      id: this.turnId(index),
      sessionId: this.sessionId,
      orchestrator: ORCHESTRATOR,
      version: VERSION,
      request: { input: { text: this.text(0, index) } },
      attributes: {},
      whenBusy: 'enqueue',
      maxQueued: 100,
      ...(claim ? { claim: claimRequest(this.turnId(index)) } : {}),
    });
    this.open += 1;
    this.accepted.push(turn.id);
    expectSame(`position of turn ${turn.id}`, turn.position, index + 1);
    return claimed ? this.checkClaim(claimed) : null;
  }

  async claimAndSettle(): Promise<void> {
    const next = await this.settle(await this.claim());
    expectSame(`turn after ${this.turnId(this.turns - 1)}`, next, null);
  }

  async claim(): Promise<TurnHold> {
    const claimed = await this.adapter.turns.claim(this.sessionId, claimRequest(this.turnId()));
    return this.checkClaim(claimed);
  }

  /** @returns the claim of the lane's next turn, if it exists */
  async settle(hold: TurnHold): Promise<TurnHold | null> {
    const turnId = this.turnId();
    const { turn, next } = await this.adapter.turns.settle(
      hold,
      {
        status: 'awaiting-input',
        reply: { text: this.text(1) },
        messages: [
          { id: `${turnId}.0`, role: 'user', content: this.text(0) },
          { id: `${turnId}.1`, role: 'assistant', content: this.text(1) },
        ],
        checkpoint: {
          orchestrator: ORCHESTRATOR,
          sessionId: this.sessionId,
          turnIndex: this.turns,
          turnId,
          ...(this.turns === 0 ? {} : { parent: this.turns - 1 }),
          state: this.state(),
          lastRoute: ['status'],
          signature: 'signature',
          version: VERSION,
          summarizedThrough: 0,
        },
        keepCheckpoints: KEEP_CHECKPOINTS,
      },
      claimRequest(`${turnId}.next`),
    );
    expectSame(
      `settled turn ${turnId}`,
      [turn.id, turn.status, turn.turnIndex],
      [turnId, 'awaiting-input', this.turns],
    );
    this.turns += 1;
    this.open -= 1;
    this.messages += 2;
    return this.open > 0 ? this.checkClaim(next) : next && next.hold;
  }

  async turn(): Promise<void> {
    await this.accept();
    await this.claimAndSettle();
  }

  async runTurns(turns: number): Promise<this> {
    for (let i = 0; i < turns; i += 1) await this.turn();
    return this;
  }

  /** Checks the stored data: the turns since the last check, the latest checkpoint, the end of the log. @throws WrongAnswerError */
  async verify(): Promise<void> {
    const { turns, checkpoints, conversations } = this.adapter;
    for (const id of this.accepted.splice(0)) {
      const turn = await turns.get(id);
      expectSame(`stored turn ${id}`, [turn?.status, turn?.position], ['awaiting-input', (turn?.turnIndex ?? NaN) + 1]);
    }
    expectSame(
      `open turns of ${this.sessionId}`,
      await turns.list({ sessionId: this.sessionId, status: ['queued', 'running'] }),
      [],
    );
    const checkpoint = await checkpoints.load(ORCHESTRATOR, this.sessionId);
    expectSame(`checkpoint of ${this.sessionId}`, checkpoint?.turnIndex, this.turns - 1);
    const recent = await conversations.window(this.sessionId, 2);
    expectSame(
      `log of ${this.sessionId}`,
      recent.map(({ position, role }) => [position, role]),
      [
        [this.messages - 1, 'user'],
        [this.messages, 'assistant'],
      ],
    );
  }

  private checkClaim(claimed: ClaimedTurn | null): TurnHold {
    if (!claimed) throw new WrongAnswerError(`Turn ${this.turnId()} could not be claimed.`);
    const { turn, session, checkpoint, history } = claimed;
    const found = [turn.id, session?.id, checkpoint?.turnIndex, history.length, history.at(-1)?.position];
    const window = Math.min(WINDOW, this.messages);
    expectSame(`claim of ${this.turnId()}`, found, [
      this.turnId(),
      this.sessionId,
      this.turns === 0 ? undefined : this.turns - 1,
      window,
      this.messages || undefined,
    ]);
    return claimed.hold;
  }

  /** The turn to settle. Default: the first open one. */
  private turnId(index = this.turns): string {
    return `${this.sessionId}.${index}`;
  }

  private text(message: 0 | 1, index = this.turns): string {
    return words(this.payload.messageBytes, 2 * index + message);
  }

  private state(): { orderId: number; note: string } {
    return { orderId: this.turns, note: words(this.payload.checkpointBytes, this.turns) };
  }
}

function claimRequest(holder: string): ClaimRequest {
  return { holder, leaseMs: LEASE_MS, maxLost: 3, windows: { [ORCHESTRATOR]: WINDOW } };
}
