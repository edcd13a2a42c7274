import { type CancelMode, type TurnStatus, type WhenBusy } from '../../lib/turn/turn.js';

export interface ModelTurn {
  readonly id: string;
  status: TurnStatus;
  failures: number;
  mark: CancelMode | null;
  /** When a retry is due. */
  dueAt: number | null;
  waitsFor: { readonly signal: string; readonly until: number } | null;
  readonly signals: Set<string>;
  /** What waits gave, by signal. */
  readonly steps: Map<string, 'received' | 'lapsed'>;
}

export interface ModelClaim {
  readonly leaseUntil: number;
  readonly maxAttempts: number;
}

/** A lane as the transition table in DESIGN.md has it, in the plainest words: one array of turns and who runs. */
export class ModelLane {
  turns: ModelTurn[] = [];
  leaseUntil = 0;
  expired = false;
  checkpoints = 0;
  /** Who said something: the ids of turns. */
  messages: string[] = [];

  get open(): ModelTurn[] {
    return this.turns.filter(({ status }) => status === 'queued' || status === 'running' || status === 'waiting');
  }

  get head(): ModelTurn | undefined {
    return this.open[0];
  }

  get running(): ModelTurn | undefined {
    return this.turns.find(({ status }) => status === 'running');
  }

  get queued(): ModelTurn[] {
    return this.turns.filter(({ status }) => status === 'queued');
  }

  /** @returns the code of the error, or nothing */
  accept(id: string, whenBusy: WhenBusy, maxQueued: number): string | undefined {
    if (this.expired) return 'SESSION_STATE';
    if (whenBusy === 'reject' && this.head) return 'SESSION_BUSY';
    const supersedes = whenBusy === 'latest' || whenBusy === 'replace';
    if ((supersedes ? 0 : this.queued.length) >= maxQueued) return 'LANE_FULL';

    const holder = this.head?.status === 'queued' ? undefined : this.head;
    if (supersedes) for (const turn of this.queued) Object.assign(turn, { status: 'superseded', dueAt: null });
    if (holder && whenBusy === 'rollback') this.ask(holder, 'rollback');
    if (holder && (whenBusy === 'interrupt' || whenBusy === 'replace')) this.ask(holder, 'interrupt');
    this.turns.push(newTurn(id));
    return undefined;
  }

  /** @returns the turn that runs now because of this claim */
  claim({ leaseUntil, maxAttempts }: ModelClaim, now: number): ModelTurn | null {
    for (;;) {
      const { head } = this;
      if (!head || !this.isClaimable(now)) return null;
      const lapsed = head.status === 'running';
      if (lapsed && this.mustEnd(head)) {
        this.stop(head, head.mark ?? 'cancel');
        continue;
      }
      if (lapsed) head.failures += 1;
      if (lapsed && head.failures >= maxAttempts) {
        head.status = 'failed';
      } else {
        if (head.waitsFor) this.result(head, head.waitsFor.signal, 'lapsed');
        Object.assign(head, { status: 'running', waitsFor: null, dueAt: null });
        this.leaseUntil = leaseUntil;
        return head;
      }
    }
  }

  /** Whether a claim would find something to do. */
  isClaimable(now: number): boolean {
    const { head } = this;
    if (head?.status === 'running') return this.leaseUntil <= now;
    if (head?.status === 'waiting') return (head.waitsFor?.until ?? Infinity) <= now;
    return head !== undefined && (head.dueAt ?? 0) <= now;
  }

  settle(turn: ModelTurn, status: 'awaiting-input' | 'failed' | 'cancelled'): void {
    turn.status = status;
    turn.mark = null;
    if (status === 'failed') turn.failures += 1;
    if (status !== 'awaiting-input') return;
    this.messages.push(turn.id);
    this.checkpoints += 1;
  }

  retry(turn: ModelTurn, dueAt: number): void {
    if (this.mustEnd(turn)) this.stop(turn, turn.mark ?? 'cancel');
    else Object.assign(turn, { status: 'queued', failures: turn.failures + 1, dueAt });
  }

  release(turn: ModelTurn): void {
    if (this.mustEnd(turn)) this.stop(turn, turn.mark ?? 'cancel');
    else turn.status = 'queued';
  }

  wait(turn: ModelTurn, signal: string, until: number): void {
    if (turn.signals.has(signal)) this.result(turn, signal, 'received');
    else if (this.mustEnd(turn)) this.stop(turn, turn.mark ?? 'cancel');
    else Object.assign(turn, { status: 'waiting', waitsFor: { signal, until } });
  }

  /** @returns the code of the error, or whether it was the first of its name */
  signal(turn: ModelTurn, signal: string): string | boolean {
    if (turn.signals.has(signal)) return false;
    if (!this.open.includes(turn)) return 'TURN_SETTLED';
    turn.signals.add(signal);
    if (turn.waitsFor?.signal !== signal) return true;
    this.result(turn, signal, 'received');
    Object.assign(turn, { status: 'queued', waitsFor: null });
    return true;
  }

  cancel(turn: ModelTurn, mode: CancelMode): void {
    if (turn.status === 'queued') this.stop(turn, 'cancel');
    else if (this.open.includes(turn)) this.ask(turn, mode);
  }

  expire(): void {
    this.expired = true;
    for (const turn of this.open) if (turn.status !== 'running') this.stop(turn, 'cancel');
  }

  /** Whether the attempt that runs is the last one. */
  private mustEnd(turn: ModelTurn): boolean {
    return turn.mark !== null || this.expired;
  }

  /** Asks a running turn to stop; a waiting one has nobody to ask, and ends. */
  private ask(turn: ModelTurn, mode: CancelMode): void {
    if (turn.status === 'waiting') this.stop(turn, mode);
    else turn.mark ??= mode;
  }

  /** The first result of a wait stays. */
  private result(turn: ModelTurn, signal: string, result: 'received' | 'lapsed'): void {
    if (!turn.steps.has(signal)) turn.steps.set(signal, result);
  }

  private stop(turn: ModelTurn, mode: CancelMode): void {
    if (mode === 'interrupt') this.messages.push(turn.id);
    Object.assign(turn, { status: 'cancelled', mark: null, waitsFor: null, dueAt: null });
  }
}

function newTurn(id: string): ModelTurn {
  return {
    id,
    status: 'queued',
    failures: 0,
    mark: null,
    dueAt: null,
    waitsFor: null,
    signals: new Set(),
    steps: new Map(),
  };
}
