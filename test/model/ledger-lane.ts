import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { isTerminal, memoryAdapter, SessionsError, type SessionsAdapter, type Turn } from 'nestjs-agent-sessions';
import {
  type AtomicSessionStoreAdapter,
  type ClaimedTurn,
  type ClaimRequest,
  type StoredStep,
  TurnFencedError,
  type TurnHold,
} from 'nestjs-agent-sessions/adapter';
import { TestClock } from 'nestjs-agent-sessions/testing';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';
import { type Answer, type Given, isOpen, type LaneAction, type LaneState } from './lane.js';

const DESK = 'desk';
/** The duration of leases, delays and waits. It passes when time passes in the model. */
const A_WHILE_MS = 600_000;
const STEP = { kind: 'step' as const, iteration: 0, intent: 'answer', parent: '', name: 'step', key: 0 };
const WAIT = { ...STEP, name: 'wait' };

/** A lane in a real ledger that receives the actions of the model. */
export class LedgerLane {
  /** Holds by the model's fence; the fences of a store are larger. */
  private readonly holds = new Map<number, TurnHold>();

  /**
   * @param sessionId the id of a session that no other test uses
   * @param clock the store's clock, if the test can move it
   */
  private constructor(
    private readonly adapter: SessionsAdapter,
    private readonly sessionId: string,
    private readonly maxLost: number,
    private readonly clock: TestClock | null,
  ) {}

  static async inMemory(maxLost: number): Promise<LedgerLane> {
    const clock = new TestClock();
    return LedgerLane.open(memoryAdapter({ clock: clock.now }), maxLost, clock);
  }

  static async open(adapter: SessionsAdapter, maxLost: number, clock: TestClock | null = null): Promise<LedgerLane> {
    const lane = new LedgerLane(adapter, randomUUID(), maxLost, clock);
    const draft = { id: lane.sessionId, userId: lane.sessionId, attachedSurfaces: [], metadata: {} };
    await lane.sessions.create(draft, { policy: 'share', maxSurfaces: 1 });
    return lane;
  }

  /** If the test cannot move time, delays and waits end immediately: see `PromptTable`. */
  get canWait(): boolean {
    return this.clock !== null;
  }

  /** @param expected the answer of the model @returns the answer of the ledger in the format of the model */
  async perform(action: LaneAction, expected: Answer): Promise<unknown> {
    try {
      return await this.send(action, expected);
    } catch (error) {
      if (error instanceof SessionsError) return error.code;
      throw error;
    }
  }

  private async send(action: LaneAction, expected: Answer): Promise<unknown> {
    const { sessionId } = this;
    const { turns } = this.adapter;
    switch (action.type) {
      case 'accept': {
        const { turn, duplicate, notify } = await turns.accept({
          ...turnRequest(this.id(action.turn), action),
          sessionId,
        });
        return { position: turn.position, duplicate, notify };
      }
      case 'claim':
        return this.given(await turns.claim(sessionId, this.claim(action.claim, action.suspects)), expected);
      case 'signal': {
        const { accepted, notify } = await turns.signal(this.id(action.turn), WAIT.name, action.payload);
        return { accepted, notify };
      }
      case 'cancel': {
        const { turn, notify } = await turns.cancel(this.id(action.turn), action.mode);
        return { status: turn.status, mark: turn.cancelMode ?? null, notify };
      }
      case 'expire':
        await this.sessions.expire(sessionId);
        return null;
      case 'time':
        await this.passTime();
        return null;
      default:
        return this.write(action, expected);
    }
  }

  private async write(action: Extract<LaneAction, { hold: unknown }>, expected: Answer): Promise<unknown> {
    const { turns } = this.adapter;
    const hold = this.holds.get(action.hold.fence);
    if (!hold) throw new Error(`The ledger granted no claim for fence ${action.hold.fence} of the model.`);
    switch (action.type) {
      case 'renew':
        return { mark: (await turns.renew(hold, A_WHILE_MS)).cancelMode ?? null };
      case 'retry': {
        const error = { name: 'Error', message: 'no' };
        return { status: (await turns.retry(hold, { error, delayMs: this.delayMs })).status, received: null };
      }
      case 'release':
        return { status: (await turns.release(hold, 0)).status, received: null };
      case 'wait': {
        const wait = { signal: WAIT.name, step: WAIT, timeoutMs: this.delayMs };
        const { turn, received } = await turns.wait(hold, wait);
        return { status: turn.status, received: received?.payload ?? null };
      }
      case 'saveStep':
        await turns.saveStep(hold, { ...STEP, value: 1 });
        return { stored: true };
      case 'settle':
        return this.settle(action, hold, expected);
    }
  }

  private async settle(
    { status, index, message, next }: Extract<LaneAction, { type: 'settle' }>,
    hold: TurnHold,
    expected: Answer,
  ): Promise<unknown> {
    const { turnId } = hold;
    const settlement = {
      status,
      messages: message ? [{ id: `${turnId}.0`, role: 'user' as const, content: turnId }] : [],
      ...(index === null ? {} : { checkpoint: { ...CHECKPOINT, sessionId: this.sessionId, turnIndex: index, turnId } }),
      keepCheckpoints: 'all' as const,
    };
    const claim = next === null ? undefined : this.claim(next);
    const settled = await this.adapter.turns.settle(hold, settlement, claim);
    const expectedNext = (expected as { readonly next?: Answer } | null)?.next ?? null;
    return { status: settled.turn.status, next: this.given(settled.next, expectedNext), notify: settled.notify };
  }

  private claim(name: number, suspects = false): ClaimRequest {
    return claimRequest(String(name), {
      leaseMs: A_WHILE_MS,
      maxLost: this.maxLost,
      lossPauseMs: this.delayMs,
      suspects,
    });
  }

  private given(claimed: ClaimedTurn | null, expected: Answer): Given | null {
    if (!claimed) return null;
    const { hold, turn, checkpoint, steps } = claimed;
    return {
      turn: number(turn.id),
      fence: this.fenceOf(hold, expected),
      failures: turn.failures,
      lost: turn.lost,
      index: (checkpoint?.turnIndex ?? -1) + 1,
      step: steps.some(({ name }) => name === STEP.name),
      answer: answerIn(steps),
    };
  }

  /** Returns the model's fence: the expected one if the ledger's fence is new and higher than all others, or already mapped. */
  private fenceOf(hold: TurnHold, expected: Answer): number {
    if (expected === null || !('fence' in Object(expected))) return NaN;
    const { fence } = expected as Given;
    const known = this.holds.get(fence);
    const highest = Math.max(...[...this.holds.values()].map((other) => other.fence), 0);
    if (known ? !isDeepStrictEqual(known, hold) : hold.fence <= highest) return NaN;
    this.holds.set(fence, hold);
    return fence;
  }

  /** Returns all readable data of the lane, in the format of {@link viewOf} for a state of the model. */
  async view(): Promise<unknown> {
    const { sessionId } = this;
    const { turns, conversations, checkpoints } = this.adapter;
    const all = await turns.list({ sessionId });
    const { head } = await turns.lane(sessionId);
    const messages = await conversations.page(sessionId, {});
    const history = await checkpoints.history(DESK, sessionId);
    const session = await this.sessions.fetchById(sessionId);
    const isRunning = head?.status === 'running';
    return {
      turns: all.map((turn) => this.turn(turn)),
      runner: isRunning ? [number(head.id), head.worker, this.isPast(head.leaseUntil)] : null,
      messages: messages.map(({ turnId }) => number(turnId ?? '')),
      checkpoints: history.map(({ turnIndex, turnId }) => [turnIndex, number(turnId ?? '')]).reverse(),
      expired: session?.state === 'expired',
    };
  }

  private turn({ position, status, startedAt, failures, lost, cancelMode, dueAt, waitingFor }: Turn): unknown {
    const due = status === 'queued' ? this.isPast(dueAt) : status === 'waiting' && this.isPast(waitingFor?.until);
    const begun = !isTerminal(status) && startedAt !== undefined;
    return { position, status, begun, failures, lost, mark: cancelMode ?? null, due };
  }

  private isPast(time: string | undefined): boolean {
    const now = this.clock?.now() ?? Date.now();
    // Times are past or far away, so small clock differences do not matter.
    return time === undefined || Date.parse(time) <= now + A_WHILE_MS / 2;
  }

  private get delayMs(): number {
    return this.canWait ? A_WHILE_MS : 0;
  }

  private async passTime(): Promise<void> {
    if (this.clock) return this.clock.advance(A_WHILE_MS);
    const latest = [...this.holds.values()].at(-1);
    // The holder can end its lease immediately by a renewal; a worker without the lease is rejected.
    if (latest) await this.adapter.turns.renew(latest, 0).catch(ignoreRefusal);
  }

  /** Returns whether `due` eventually returns the lane. Moves time. */
  async getsAttention(): Promise<boolean> {
    await this.clock?.advance(10 * A_WHILE_MS);
    return (await this.adapter.turns.due(1)).length > 0;
  }

  private id(turn: number): string {
    return `${this.sessionId} ${turn}`;
  }

  private get sessions(): AtomicSessionStoreAdapter {
    return this.adapter.sessions as AtomicSessionStoreAdapter;
  }
}

export function viewOf({ turns, runner, messages, checkpoints, expired }: LaneState): unknown {
  return {
    turns: turns.map((turn) => {
      const { position, status, begun, failures, lost, mark } = turn;
      return { position, status, begun, failures, lost, mark, due: isOpen(turn) && status !== 'running' && turn.due };
    }),
    runner: runner && [runner.turn, String(runner.claim), runner.lapsed],
    messages,
    checkpoints: checkpoints.map((turn, index) => [index, turn]),
    expired,
  };
}

const CHECKPOINT = {
  orchestrator: DESK,
  state: {},
  lastRoute: [],
  signature: 'signature',
  version: '1',
  summarizedThrough: 0,
};

function answerIn(steps: readonly StoredStep[]): Given['answer'] {
  const result = steps.find(({ name }) => name === WAIT.name)?.value;
  if (result === undefined) return null;
  const { received, payload } = result as { readonly received: boolean; readonly payload: 'a' | 'b' };
  return received ? payload : 'timed out';
}

function ignoreRefusal(error: unknown): void {
  if (!(error instanceof TurnFencedError)) throw error;
}

function number(turnId: string): number {
  return Number(turnId.split(' ')[1]);
}
