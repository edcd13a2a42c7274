import {
  type CancelMode,
  type Checkpoint,
  isTerminal,
  type JsonObject,
  type JsonValue,
  type ConversationMessage,
  type StepPredicateContext,
  type Turn,
  type TurnEvent,
  type TurnStatus,
  type WhenBusy,
} from 'nestjs-agent-sessions';
import { ReferencePlan } from '../../../orchestration/reference.js';
import { stepsOf, TOKENS_BEFORE } from '../../actor/plan.js';
import {
  type Claim,
  type Held,
  type Operations,
  type SessionContents,
  stepOfCall,
  type StoreContents,
} from '../../history/history.js';
import { link } from '../../history/link.js';

export const LEASE_US = 2_000_000;
const EPOCH = Date.parse('2026-01-01T00:00:00Z');

type Draft<T> = { -readonly [Key in keyof T]: T[Key] };
type Args<Op extends keyof Operations> = Operations[Op]['args'];

interface StoredTurn extends Draft<Turn> {
  settledFence?: number;
  /** Number of attempts lost since a step was stored. */
  lostSinceStep: number;
  readonly steps: Map<string, JsonValue>;
  readonly signals: Map<string, JsonValue>;
  readonly events: TurnEvent[];
  lastBatch: { readonly fence: number; readonly number: number } | null;
}

/** The stored data of a tool call. */
export interface SimulatedUse {
  readonly tool: string;
  readonly tokens: number;
}

type DoneUse = SimulatedUse & { readonly turnId: string; readonly callId: string };

interface Lane {
  readonly turns: StoredTurn[];
  readonly messages: ConversationMessage[];
  readonly checkpoints: Checkpoint[];
  /** The tool uses of successful turns. */
  readonly uses: DoneUse[];
  fence: number;
  running: { readonly turn: StoredTurn; leaseUntil: number } | null;
}

/** A rejection by the store. */
export class Refused extends Error {
  constructor(readonly code: string) {
    super(code);
  }
}

/** The lanes of a correct store, simple enough to verify by reading. */
export class SimulatedStore {
  now = 0;
  private readonly lanes = new Map<string, Lane>();
  private readonly byId = new Map<string, StoredTurn>();

  /** @param maxLost number of lost attempts after which a turn fails */
  constructor(private readonly maxLost: number) {}

  submit({ sessionId, key, whenBusy }: Args<'submit'>): Operations['submit']['value'] {
    const lane = this.lane(sessionId);
    const known = lane.turns.find(({ idempotencyKey }) => idempotencyKey === key);
    if (known) return { turnId: known.id, position: known.position };
    const [head] = openTurns(lane);
    if (head && whenBusy === 'reject') throw new Refused('SESSION_BUSY');
    const turn = this.newTurn(sessionId, key, lane.turns.length + 1);
    this.makeRoom(lane, head, whenBusy, turn.id);
    lane.turns.push(turn);
    this.byId.set(turn.id, turn);
    return { turnId: turn.id, position: turn.position };
  }

  result({ turnId }: Args<'result'>): Operations['result']['value'] {
    const { status, reply } = this.turn(turnId);
    if (!isTerminal(status)) throw new Refused('TURN_WAIT_TIMEOUT');
    return { status, text: reply?.text ?? null };
  }

  cancel({ turnId, mode }: Args<'cancel'>): Operations['cancel']['value'] {
    const turn = this.turn(turnId);
    if (turn.status === 'running') turn.cancelMode ??= mode;
    else if (!isTerminal(turn.status)) this.stop(turn, turn.status === 'waiting' ? mode : 'cancel');
    return { status: turn.status };
  }

  signal({ turnId, name, payload }: Args<'signal'>): Operations['signal']['value'] {
    const turn = this.turn(turnId);
    if (turn.signals.has(name)) return { accepted: false };
    if (isTerminal(turn.status)) throw new Refused('TURN_SETTLED');
    turn.signals.set(name, payload);
    if (turn.status === 'waiting' && turn.waitingFor?.signal === name) {
      storeStep(turn, name, { received: true, payload });
      turn.status = 'queued';
    }
    return { accepted: true };
  }

  claim({ sessionId }: Args<'claim'>): Claim | null {
    const lane = this.lane(sessionId);
    for (const head of openTurns(lane)) {
      if (head.status === 'waiting') return null;
      if (head.status === 'running') {
        if (lane.running && lane.running.leaseUntil > this.now) return null;
        if (head.cancelMode) {
          this.stop(head, head.cancelMode);
          continue;
        }
        head.lost += 1;
        head.lostSinceStep += 1;
        if (head.lostSinceStep >= this.maxLost) {
          head.error = { name: 'WorkerLostError', code: 'WORKER_LOST', message: '' };
          this.end(head, 'failed');
          continue;
        }
      }
      return this.give(lane, head);
    }
    return null;
  }

  settle({ text, status, ...hold }: Args<'settle'>): Operations['settle']['value'] {
    const settled = this.turn(hold.turnId);
    if (settled.settledFence !== hold.fence) this.write(hold, status, text);
    return { next: this.claim(hold) };
  }

  retry(hold: Held): { status: TurnStatus } {
    return this.putBack(hold, (turn) => {
      turn.status = 'queued';
      turn.failures += 1;
    });
  }

  release(hold: Held): { status: TurnStatus } {
    return this.putBack(hold, (turn) => (turn.status = 'queued'));
  }

  wait({ signal, ...hold }: Args<'wait'>): { status: TurnStatus } {
    const turn = this.held(hold);
    if (turn.signals.has(signal)) {
      storeStep(turn, signal, { received: true, payload: turn.signals.get(signal) ?? null });
      return { status: 'running' };
    }
    return this.putBack(hold, (suspended) => {
      suspended.status = 'waiting';
      suspended.waitingFor = { signal };
    });
  }

  renew(hold: Held): null {
    this.held(hold);
    const { running } = this.lane(hold.sessionId);
    if (running) running.leaseUntil = this.now + LEASE_US;
    return null;
  }

  saveStep({ step, value, ...hold }: Args<'saveStep'>): Operations['saveStep']['value'] {
    const turn = this.held(hold);
    if (!turn.steps.has(step)) storeStep(turn, step, value);
    return { value: turn.steps.get(step) ?? null };
  }

  append({ number, count, ...hold }: Args<'append'>): Operations['append']['value'] {
    const { fence } = hold;
    const turn = this.held(hold);
    const { events, lastBatch } = turn;
    if (lastBatch?.fence === fence && lastBatch.number >= number) return { last: events.length };
    const types = Array.from({ length: count }, () => 'piece');
    if (lastBatch && lastBatch.fence !== fence) types.unshift('attempt');
    for (const type of types) events.push({ offset: events.length + 1, type, data: null });
    turn.lastBatch = { fence, number };
    return { last: events.length };
  }

  /** Returns the events after an offset for a reader. */
  read(turnId: string, after: number): { readonly offset: number; readonly name: string } | null {
    const { events, status } = this.turn(turnId);
    if (after < events.length) return { offset: after + 1, name: events[after].type };
    return isTerminal(status) && after === events.length ? { offset: after + 1, name: 'settled' } : null;
  }

  keyOf(turnId: string): string {
    return this.turn(turnId).request.input.text;
  }

  /** Returns the tokens of the session from earlier turns, which have all ended at the claim. */
  tokensBefore(turnId: string): number {
    const { sessionId, position } = this.turn(turnId);
    const before = this.lane(sessionId).uses.filter((use) => this.turn(use.turnId).position < position);
    return tokensOf(before);
  }

  /** Adds a script to the turn's message. */
  instruct(turnId: string, metadata: JsonObject): void {
    const turn = this.turn(turnId);
    turn.request = { input: { ...turn.request.input, metadata } };
  }

  /** Returns whether the turn was asked to stop. */
  isMarked(turnId: string): boolean {
    return this.turn(turnId).cancelMode !== undefined;
  }

  isIdle(): boolean {
    return [...this.lanes.values()].every((lane) => openTurns(lane).length === 0);
  }

  contents(): StoreContents {
    return { sessions: [...this.lanes].map(([sessionId, lane]) => contentsOf(sessionId, lane)), leftovers: [] };
  }

  private write(hold: Held, status: TurnStatus, text: string | null): void {
    const turn = this.held(hold);
    const lane = this.lane(hold.sessionId);
    if (status === 'awaiting-input' || status === 'completed') {
      const last = lane.checkpoints.at(-1);
      turn.turnIndex = lane.checkpoints.length;
      turn.reply = { text };
      lane.checkpoints.push({
        orchestrator: turn.orchestrator,
        sessionId: turn.sessionId,
        turnIndex: turn.turnIndex,
        state: stateAfter(last?.state, turn),
        lastRoute: [],
        signature: '',
        version: '1',
        summarizedThrough: 0,
        savedAt: this.clock(),
        turnId: turn.id,
        ...(last ? { parent: last.turnIndex } : {}),
      });
      this.say(turn, 'user', turn.request.input.text);
      this.say(turn, 'assistant', text);
      lane.uses.push(...usesOf(turn));
    }
    turn.settledFence = hold.fence;
    if (status === 'cancelled') this.stop(turn, turn.cancelMode ?? 'cancel');
    else this.end(turn, status);
  }

  private makeRoom(lane: Lane, head: StoredTurn | undefined, whenBusy: WhenBusy, newId: string): void {
    if (whenBusy === 'latest' || whenBusy === 'replace') {
      for (const turn of openTurns(lane).filter(({ startedAt }) => startedAt === undefined)) {
        turn.supersededBy = newId;
        this.end(turn, 'superseded');
      }
    }
    if (!head || (whenBusy !== 'interrupt' && whenBusy !== 'rollback' && whenBusy !== 'replace')) return;
    const mode = whenBusy === 'rollback' ? 'rollback' : 'interrupt';
    if (head.status === 'running') head.cancelMode ??= mode;
    else if (head.startedAt !== undefined) this.stop(head, mode);
  }

  private give(lane: Lane, head: StoredTurn): Claim {
    lane.fence += 1;
    lane.running = { turn: head, leaseUntil: this.now + LEASE_US };
    head.status = 'running';
    head.startedAt ??= this.clock();
    const { sessionId, id: turnId, position, failures, lost } = head;
    return { sessionId, turnId, fence: lane.fence, position, failures, lost, steps: [...head.steps.keys()] };
  }

  private held({ sessionId, turnId, fence }: Held): StoredTurn {
    const { running, fence: latest } = this.lane(sessionId);
    if (running?.turn.id !== turnId || latest !== fence) throw new Refused('TURN_FENCED');
    return running.turn;
  }

  private putBack(hold: Held, change: (turn: StoredTurn) => void): { status: TurnStatus } {
    const turn = this.held(hold);
    if (turn.cancelMode) this.stop(turn, turn.cancelMode);
    else change(turn);
    this.lane(hold.sessionId).running = null;
    return { status: turn.status };
  }

  private stop(turn: StoredTurn, mode: CancelMode): void {
    if (mode === 'interrupt') this.say(turn, 'user', turn.request.input.text);
    this.end(turn, 'cancelled');
  }

  private end(turn: StoredTurn, status: TurnStatus): void {
    const lane = this.lane(turn.sessionId);
    if (lane.running?.turn === turn) lane.running = null;
    turn.status = status;
    turn.settledAt = this.clock();
  }

  private say(
    { id, sessionId, orchestrator }: StoredTurn,
    role: ConversationMessage['role'],
    content: string | null,
  ): void {
    const { messages } = this.lane(sessionId);
    const index = messages.filter(({ turnId }) => turnId === id).length;
    const position = messages.length + 1;
    messages.push({ id: `${id}.${index}`, position, role, content, turnId: id, orchestrator, createdAt: this.clock() });
  }

  private newTurn(sessionId: string, key: string, position: number): StoredTurn {
    return {
      id: `turn-${this.byId.size + 1}`,
      sessionId,
      position,
      orchestrator: 'chaos',
      version: '1',
      request: { input: { text: key } },
      attributes: {},
      idempotencyKey: key,
      status: 'queued',
      failures: 0,
      lost: 0,
      lostSinceStep: 0,
      acceptedAt: this.clock(),
      steps: new Map(),
      signals: new Map(),
      events: [],
      lastBatch: null,
    };
  }

  private turn(turnId: string): StoredTurn {
    const turn = this.byId.get(turnId);
    if (!turn) throw new Refused('TURN_NOT_FOUND');
    return turn;
  }

  private lane(sessionId: string): Lane {
    const lane = this.lanes.get(sessionId) ?? {
      turns: [],
      messages: [],
      checkpoints: [],
      uses: [],
      fence: 0,
      running: null,
    };
    this.lanes.set(sessionId, lane);
    return lane;
  }

  private clock(): string {
    return new Date(EPOCH + Math.floor(this.now / 1000)).toISOString();
  }
}

function openTurns({ turns }: Lane): StoredTurn[] {
  return turns.filter(({ status }) => !isTerminal(status));
}

function stateAfter(state: JsonObject | undefined, { id }: StoredTurn): JsonObject {
  return { turns: ((state?.turns as number | undefined) ?? 0) + 1, chain: link((state?.chain as string) ?? '', id) };
}

function usesOf({ id: turnId, steps }: StoredTurn): DoneUse[] {
  const calls = [...steps].filter(([step]) => step.startsWith(stepOfCall('')));
  return calls.map(([step, use]) => ({
    turnId,
    callId: step.slice(stepOfCall('').length),
    ...(use as unknown as SimulatedUse),
  }));
}

/** Stores a new step, which is progress. */
function storeStep(turn: StoredTurn, name: string, value: JsonValue): void {
  turn.steps.set(name, value);
  turn.lostSinceStep = 0;
}

function tokensOf(uses: readonly DoneUse[]): number {
  return uses.reduce((sum, { tokens }) => sum + tokens, TOKENS_BEFORE);
}

function orchestrationOf({ uses }: Lane): StepPredicateContext['state'] {
  const plan = new ReferencePlan(stepsOf(''));
  for (const { tool } of uses) plan.use({ tool, failed: false });
  const { history, ...state } = plan.state;
  const totalTokens = tokensOf(uses);
  return {
    ...state,
    toolHistory: uses.map(({ tool, callId }, index) => ({
      tool,
      callId,
      step: history[index].step,
      outcome: 'succeeded',
      at: '',
    })),
    progress: {},
    cumulativeTokenUsage: { promptTokens: totalTokens, completionTokens: 0, totalTokens },
  };
}

function contentsOf(sessionId: string, lane: Lane): SessionContents {
  const open = openTurns(lane);
  const turns = lane.turns.map(
    ({ steps: _, signals: __, events: ___, lastBatch: ____, settledFence: _____, lostSinceStep: ______, ...turn }) =>
      turn,
  );
  return {
    sessionId,
    turns,
    messages: lane.messages,
    checkpoints: lane.checkpoints,
    events: Object.fromEntries(lane.turns.map(({ id, events }) => [id, events])),
    lane: { sessionId, mode: 'open', queued: open.length, ...(open[0] ? { head: open[0] } : {}) },
    orchestration: orchestrationOf(lane),
  };
}
