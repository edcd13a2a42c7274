import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { type AtomicSessionStoreAdapter } from '../../ledger/session.store.js';
import { type Lane } from '../../ledger/lane.js';
import { type Turn } from '../../ledger/turn.js';
import { type ClaimedTurn, type ClaimRequest, type TurnHold, type TurnLedger } from '../../ledger/turn.store.js';
import { type StoredStep } from '../../ledger/turn-step.js';
import { ClientDriver, latest } from './client-driver.js';
import { MAX_LOST, MAX_QUEUED, WINDOW } from './lane-model.js';
import { type LaneAction, type LaneClaim, type LaneOperation } from './lane-operation.js';

const DESK = 'desk';
/** More rows than any test creates. */
const ALL = 1000;

/** Drives the lane of a session in a store. Records accepted turns and claims, the newest last. */
export class LaneDriver extends ClientDriver<LaneAction, LaneOperation> {
  private readonly turnIds: string[] = [];
  private readonly claims: { readonly hold: TurnHold; readonly nextIndex: number }[] = [];
  private again: { turnId: string | null; holder: string | null } = { turnId: null, holder: null };

  plan(action: LaneAction): LaneOperation | null {
    switch (action.type) {
      case 'accept':
        return this.planAccept(action);
      case 'claim':
        return { type: 'claim', ...this.newClaim(action.leaseMs, action.again), suspects: action.suspects };
      case 'signal': {
        const turnId = latest(this.turnIds, action.which);
        return turnId ? { type: 'signal', turnId, signal: action.signal, payload: this.mint('payload') } : null;
      }
      case 'cancel': {
        const turnId = latest(this.turnIds, action.which);
        return turnId ? { type: 'cancel', turnId, mode: action.mode } : null;
      }
      case 'delete':
      case 'erase':
        // A repeated id refers to the same turn only while the first one exists.
        this.again = { turnId: null, holder: null };
        return action;
      default:
        return 'which' in action ? this.planWrite(action) : action;
    }
  }

  private planAccept({ whenBusy, again, leaseMs }: Extract<LaneAction, { type: 'accept' }>): LaneOperation {
    const claim = leaseMs === null ? null : this.newClaim(leaseMs, again);
    return { type: 'accept', turnId: this.turnIdFor(again), whenBusy, claim };
  }

  private planWrite(action: Extract<LaneAction, { which: number }>): LaneOperation | null {
    const claim = latest(this.claims, action.which);
    if (!claim) return null;
    const { hold } = claim;
    switch (action.type) {
      case 'settle': {
        const { status, off, handOver } = action;
        const next = handOver === null ? null : this.newClaim(handOver, false);
        return { type: 'settle', hold, status, turnIndex: claim.nextIndex + off, next };
      }
      case 'saveStep':
        return { type: 'saveStep', hold, name: action.name, value: this.mint('value') };
      case 'renew':
        return { type: 'renew', hold, leaseMs: action.leaseMs };
      case 'wait':
        return { type: 'wait', hold, signal: action.signal, timeoutMs: action.timeoutMs };
      case 'retry':
      case 'release':
        return { type: action.type, hold, delayMs: action.delayMs };
      default:
        return null;
    }
  }

  protected async call(adapter: SessionsAdapter, operation: LaneOperation): Promise<unknown> {
    const { id: sessionId } = this;
    const { turns, conversations, checkpoints } = adapter;
    const sessions = adapter.sessions as AtomicSessionStoreAdapter;
    switch (operation.type) {
      case 'accept': {
        const { turn, duplicate, claimed } = await turns.accept(this.turnOf(operation));
        return { position: turn.position, duplicate, claimed: this.shownClaim(claimed ?? null) };
      }
      case 'claim':
        return this.shownClaim(await turns.claim(sessionId, claimRequest(operation)));
      case 'signal': {
        const { accepted } = await turns.signal(operation.turnId, operation.signal, operation.payload);
        return { accepted };
      }
      case 'cancel': {
        const { turn } = await turns.cancel(operation.turnId, operation.mode);
        return { status: turn.status, mark: turn.cancelMode ?? null };
      }
      case 'control':
        return turns.control({ sessionId, mode: operation.mode });
      case 'clear':
        return turns.clear(sessionId);
      case 'create': {
        const draft = { id: sessionId, userId: sessionId, attachedSurfaces: [], metadata: {} };
        await sessions.create(draft, { policy: 'share', maxSurfaces: 1 });
        return null;
      }
      case 'expire':
        await sessions.expire(sessionId);
        return null;
      case 'revoke':
        await sessions.revoke(sessionId);
        return null;
      case 'delete':
        return sessions.delete(sessionId);
      case 'erase':
        await sessions.erase(sessionId);
        return null;
      case 'session':
        return (await sessions.fetchById(sessionId))?.state ?? null;
      case 'lane':
        return shownLane(await turns.lane(sessionId));
      case 'turns':
        return (await turns.list({ sessionId, limit: ALL })).map(shown);
      case 'messages':
        return (await conversations.page(sessionId, { limit: ALL })).map(({ content }) => content);
      case 'checkpoints': {
        const history = await checkpoints.history(DESK, sessionId, { limit: ALL });
        return history.map(({ turnIndex }) => turnIndex).reverse();
      }
      default:
        return this.write(turns, operation);
    }
  }

  private async write(turns: TurnLedger, operation: Extract<LaneOperation, { hold: TurnHold }>): Promise<unknown> {
    const { hold } = operation;
    switch (operation.type) {
      case 'renew':
        return { mark: (await turns.renew(hold, operation.leaseMs)).cancelMode ?? null };
      case 'saveStep':
        return { value: (await turns.saveStep(hold, { ...stepKey(operation.name), value: operation.value })).value };
      case 'settle':
        return this.settle(turns, operation);
      case 'wait': {
        const { signal, timeoutMs } = operation;
        const timeout = timeoutMs === null ? {} : { timeoutMs };
        const { turn, received } = await turns.wait(hold, { signal, step: stepKey(signal), ...timeout });
        return { status: turn.status, received: received?.payload ?? null };
      }
      case 'retry': {
        const error = { name: 'Error', message: 'no' };
        return { status: (await turns.retry(hold, { error, delayMs: operation.delayMs })).status, received: null };
      }
      case 'release':
        return { status: (await turns.release(hold, operation.delayMs)).status, received: null };
    }
  }

  private async settle(
    turns: TurnLedger,
    { hold, status, turnIndex, next }: Extract<LaneOperation, { type: 'settle' }>,
  ): Promise<unknown> {
    const { id: sessionId } = this;
    const message = { id: `${hold.turnId}.0`, role: 'user' as const, content: hold.turnId };
    const checkpoint = { orchestrator: DESK, sessionId, turnIndex, state: {}, lastRoute: [], signature: 'signature' };
    const succeeded = status === 'awaiting-input';
    const settled = await turns.settle(
      hold,
      {
        status,
        messages: succeeded ? [message] : [],
        ...(succeeded ? { checkpoint: { ...checkpoint, version: '1', summarizedThrough: 0 } } : {}),
        keepCheckpoints: 'all',
      },
      next ? claimRequest(next) : undefined,
    );
    return { status: settled.turn.status, next: this.shownClaim(settled.next), notify: settled.notify };
  }

  private shownClaim(claimed: ClaimedTurn | null): unknown {
    if (!claimed) return null;
    const { hold, turn, checkpoint, history, steps } = claimed;
    const last = checkpoint?.turnIndex ?? -1;
    this.claims.push({ hold, nextIndex: last + 1 });
    return {
      turnId: turn.id,
      fence: hold.fence,
      failures: turn.failures,
      lost: turn.lost,
      checkpoint: last,
      history: history.map(({ content }) => content),
      steps: Object.fromEntries(steps.map(({ name, value }: StoredStep) => [name, value])),
    };
  }

  private turnOf({
    turnId,
    whenBusy,
    claim,
  }: Extract<LaneOperation, { type: 'accept' }>): Parameters<TurnLedger['accept']>[0] {
    return {
      id: turnId,
      sessionId: this.id,
      orchestrator: DESK,
      version: '1',
      request: { input: { text: turnId } },
      attributes: {},
      whenBusy,
      maxQueued: MAX_QUEUED,
      ...(claim ? { claim: claimRequest(claim) } : {}),
    };
  }

  private turnIdFor(again: boolean): string {
    if (again && this.again.turnId) return this.again.turnId;
    const turnId = `${this.id}.${this.mint('turn')}`;
    this.turnIds.push(turnId);
    this.again.turnId = turnId;
    return turnId;
  }

  private newClaim(leaseMs: number, again: boolean): LaneClaim {
    const holder = again && this.again.holder ? this.again.holder : this.mint('worker');
    this.again.holder = holder;
    return { holder, leaseMs };
  }
}

function claimRequest({ holder, leaseMs, suspects }: LaneClaim): ClaimRequest {
  return { holder, leaseMs, maxLost: MAX_LOST, suspects, windows: { [DESK]: WINDOW } };
}

function stepKey(name: string): Omit<StoredStep, 'value'> {
  return { kind: 'step', iteration: 0, intent: 'answer', parent: '', name, key: 0 };
}

function shownLane({ mode, queued, head }: Lane): unknown {
  if (!head) return { mode, queued, head: null };
  const { id, status, failures, lost, worker } = head;
  return { mode, queued, head: { id, status, failures, lost, worker: worker ?? null } };
}

function shown({ id, position, status, failures, lost, cancelMode, waitingFor, dueAt }: Turn): unknown {
  return {
    id,
    position,
    status,
    failures,
    lost,
    mark: cancelMode ?? null,
    waitsFor: waitingFor?.signal ?? null,
    isDelayed: dueAt !== undefined,
  };
}
