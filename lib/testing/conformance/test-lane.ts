import { type NewCheckpoint } from '../../ledger/checkpoint.js';
import { type ConversationMessage } from '../../ledger/message.js';
import { type StateName } from '../../ledger/state.store.js';
import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { type LaneMode } from '../../ledger/lane.js';
import { type StoredStep } from '../../ledger/turn-step.js';
import {
  type AcceptedTurn,
  type AcceptTurn,
  type ClaimedTurn,
  type ClaimRequest,
  type SettledTurn,
  type TurnHold,
  type TurnSettlement,
} from '../../ledger/turn.store.js';
import { type Turn } from '../../ledger/turn.js';
import { create } from './session-fixtures.js';
import { type ConformanceContext } from './target.js';

export const DESK = 'desk';
/** The document of the session that settlements append to. */
export const NOTES: StateName = { namespace: 'conformance', scope: 'desk', key: 'notes' };
/** Milliseconds longer than any test runs. */
export const LONG_MS = 60_000;
/** Milliseconds short enough to wait for on a store with a real clock. */
export const SHORT_MS = 30;

/** How a turn that has begun is queued again. */
export const WAYS_BACK = ['waits for its retry', 'was released', 'resumes after a signal'] as const;
export type WayBack = (typeof WAYS_BACK)[number];

/** A new session with its lane, and helpers for tests. */
export class TestLane {
  private constructor(
    private readonly context: ConformanceContext,
    readonly sessionId: string,
  ) {}

  static async open(context: ConformanceContext): Promise<TestLane> {
    const lane = new TestLane(context, context.id());
    await lane.createSession();
    return lane;
  }

  get adapter(): SessionsAdapter {
    return this.context.adapter;
  }

  async createSession(): Promise<void> {
    // Fills every field that the ledger returns.
    const rest = { workspaceId: 'space', attachedSurfaces: ['web'], metadata: { plan: { name: 'pro' } } };
    await create(this.context, { id: this.sessionId, ...rest });
  }

  /** Accepts a turn; `changes` replace the defaults. */
  accept(text: string, changes: Partial<AcceptTurn> = {}): Promise<AcceptedTurn> {
    return this.adapter.turns.accept(this.acceptRequest(text, changes));
  }

  acceptRequest(text: string, changes: Partial<AcceptTurn> = {}): AcceptTurn {
    return {
      id: this.context.id(),
      sessionId: this.sessionId,
      orchestrator: DESK,
      version: '1',
      request: { input: { text } },
      attributes: {},
      whenBusy: 'enqueue',
      maxQueued: 100,
      ...changes,
    };
  }

  /** Accepts a turn. @returns the turn */
  async queue(text: string, changes: Partial<AcceptTurn> = {}): Promise<Turn> {
    return (await this.accept(text, changes)).turn;
  }

  claim(changes: Partial<ClaimRequest> = {}): Promise<ClaimedTurn | null> {
    return this.adapter.turns.claim(this.sessionId, this.claimRequest(changes));
  }

  claimRequest(changes: Partial<ClaimRequest> = {}): ClaimRequest {
    return { holder: this.context.id(), leaseMs: LONG_MS, maxLost: 100, windows: {}, ...changes };
  }

  /** Claims the head of the lane. @throws when nothing can be claimed */
  async take(changes: Partial<ClaimRequest> = {}): Promise<ClaimedTurn> {
    const claimed = await this.claim(changes);
    if (!claimed) throw new Error('The head of the lane could not be claimed.');
    return claimed;
  }

  /** Accepts a turn on an idle lane and claims it. */
  async run(text: string, changes: Partial<ClaimRequest> = {}): Promise<ClaimedTurn> {
    await this.accept(text);
    return this.take(changes);
  }

  /** Claims the head of the lane and lets the lease lapse, as when a worker is lost. */
  async lapse(): Promise<ClaimedTurn> {
    const claimed = await this.take({ leaseMs: SHORT_MS });
    await this.context.elapse(SHORT_MS);
    return claimed;
  }

  settle(hold: TurnHold, changes: Partial<TurnSettlement> = {}, next?: ClaimRequest): Promise<SettledTurn> {
    return this.adapter.turns.settle(
      hold,
      { status: 'awaiting-input', messages: [], keepCheckpoints: 'all', ...changes },
      next,
    );
  }

  /** Queues a running turn again. @param retryMs milliseconds until its retry is due */
  async putBack(way: WayBack, hold: TurnHold, retryMs = LONG_MS): Promise<void> {
    const { turns } = this.adapter;
    switch (way) {
      case 'waits for its retry':
        await turns.retry(hold, { error: { name: 'Error', message: 'no' }, delayMs: retryMs });
        return;
      case 'was released':
        await turns.release(hold, 0);
        return;
      case 'resumes after a signal':
        await turns.wait(hold, { signal: 'go', step: this.step('go', null) });
        await turns.signal(hold.turnId, 'go', true);
    }
  }

  /** Claims and settles until nothing can be claimed. @returns the input texts of the turns in the order they ran */
  async drain(): Promise<string[]> {
    const texts: string[] = [];
    for (let claimed = await this.claim(); claimed; claimed = await this.claim()) {
      texts.push(claimed.turn.request.input.text);
      await this.settle(claimed.hold);
    }
    return texts;
  }

  /** Returns the settlement of a successful turn. */
  settlement(turn: Turn, turnIndex: number): Partial<TurnSettlement> {
    return {
      reply: { text: `answer ${turnIndex}` },
      messages: [
        { id: `${turn.id}.0`, role: 'user', content: turn.request.input.text },
        { id: `${turn.id}.1`, role: 'assistant', content: `answer ${turnIndex}` },
      ],
      checkpoint: this.checkpoint(turnIndex, turn.id),
      stateChanges: [{ name: NOTES, append: { id: turn.id, entries: [turnIndex], initial: {} } }],
    };
  }

  checkpoint(turnIndex: number, turnId = this.context.id()): NewCheckpoint {
    return {
      orchestrator: DESK,
      sessionId: this.sessionId,
      turnIndex,
      turnId,
      ...(turnIndex > 0 ? { parent: turnIndex - 1 } : {}),
      state: { turns: turnIndex + 1 },
      lastRoute: ['answer'],
      signature: 'signature',
      version: '1',
      summarizedThrough: 0,
    };
  }

  step(name: string, value: StoredStep['value']): StoredStep {
    return { kind: 'step', iteration: 0, intent: 'answer', parent: '', name, key: 0, value };
  }

  control(mode: LaneMode): Promise<{ readonly notify: boolean }> {
    return this.adapter.turns.control({ sessionId: this.sessionId, mode });
  }

  get(turnId: string): Promise<Turn | null> {
    return this.adapter.turns.get(turnId);
  }

  list(): Promise<Turn[]> {
    return this.adapter.turns.list({ sessionId: this.sessionId, limit: 1000 });
  }

  /** Returns every turn of the lane in order, as `text: status`. */
  async statuses(): Promise<string[]> {
    return (await this.list()).map(({ request, status }) => `${request.input.text}: ${status}`);
  }

  messages(): Promise<ConversationMessage[]> {
    return this.adapter.conversations.page(this.sessionId);
  }

  /** Reads all data of the session, to check that nothing changed. */
  async snapshot(): Promise<object> {
    const { sessions, checkpoints, state } = this.adapter;
    return {
      session: await sessions.fetchById(this.sessionId),
      turns: await this.list(),
      messages: await this.messages(),
      checkpoints: await checkpoints.history(DESK, this.sessionId),
      notes: await state.get({ ...NOTES, sessionId: this.sessionId }),
    };
  }

  /** Lets time pass on the store's clock, at least `ms` milliseconds. */
  elapse(ms: number): Promise<void> {
    return this.context.elapse(ms);
  }

  /** Returns the time of the session's last activity, or of its creation, by the store's clock. */
  async sessionTime(): Promise<string> {
    return (await this.context.sessions.fetchById(this.sessionId))?.lastActivityAt ?? '';
  }
}
