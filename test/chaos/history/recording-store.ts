import { type SessionsAdapter } from 'nestjs-agent-sessions';
import { type HistoryFile } from './history-file.js';
import { type Claim, type Held, stepOfCall } from './history.js';

type Ledger = SessionsAdapter['turns'];
type ClaimedTurn = NonNullable<Awaited<ReturnType<Ledger['claim']>>>;
type TurnHold = Parameters<Ledger['renew']>[0];
type StoredStep = Parameters<Ledger['saveStep']>[1];

/** Returns the store, and records the calls of a worker in the history. */
export function recordingStore(store: SessionsAdapter, history: HistoryFile): SessionsAdapter {
  const { turns, events } = store;
  const recorded: Partial<Ledger> = {
    claim: (sessionId, request) => history.call('claim', { sessionId }, () => turns.claim(sessionId, request), toClaim),
    // A claim in an accept is recorded like any other claim.
    accept: (request) =>
      request.claim
        ? history.call(
            'claim',
            { sessionId: request.sessionId },
            () => turns.accept(request),
            ({ claimed }) => toClaim(claimed ?? null),
          )
        : turns.accept(request),
    settle: (hold, settlement, next) =>
      history.call(
        'settle',
        { ...toHeld(hold), status: settlement.status, text: settlement.reply?.text ?? null },
        () => turns.settle(hold, settlement, next),
        (settled) => ({ next: toClaim(settled.next) }),
      ),
    retry: (hold, failure) => history.call('retry', toHeld(hold), () => turns.retry(hold, failure), statusOf),
    release: (hold, ...args) => history.call('release', toHeld(hold), () => turns.release(hold, ...args), statusOf),
    wait: (hold, wait) =>
      history.call(
        'wait',
        { ...toHeld(hold), signal: wait.signal },
        () => turns.wait(hold, wait),
        ({ turn }) => statusOf(turn),
      ),
    renew: (hold, leaseMs) =>
      history.call(
        'renew',
        toHeld(hold),
        () => turns.renew(hold, leaseMs),
        () => null,
      ),
    saveStep: (hold, step, ...more) =>
      history.call(
        'saveStep',
        { ...toHeld(hold), step: nameOf(step), value: step.value },
        () => turns.saveStep(hold, step, ...more),
        ({ value }) => ({ value }),
      ),
  };
  const append: typeof events.append = (hold, batch, ttlMs) =>
    history.call(
      'append',
      { ...toHeld(hold), number: batch.number, count: batch.events.length },
      () => events.append(hold, batch, ttlMs),
      (last) => ({ last }),
    );
  return over(store, { turns: over(turns, recorded), events: over(events, { append }) });
}

/** Returns the object with some members replaced. */
function over<T extends object>(target: T, replaced: Partial<T>): T {
  return new Proxy(target, {
    get(_, key) {
      if (Object.hasOwn(replaced, key)) return Reflect.get(replaced, key) as unknown;
      const value: unknown = Reflect.get(target, key);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

function toHeld({ sessionId, turnId, fence }: TurnHold): Held {
  return { sessionId, turnId, fence };
}

function toClaim(claimed: ClaimedTurn | null): Claim | null {
  if (!claimed) return null;
  const { position, failures, lost } = claimed.turn;
  return { ...toHeld(claimed.hold), position, failures, lost, steps: claimed.steps.map(nameOf) };
}

/** Step names of a run are unique within a turn. */
function nameOf({ kind, name }: Pick<StoredStep, 'kind' | 'name'>): string {
  return kind === 'tool' ? stepOfCall(name) : name;
}

function statusOf<Status>({ status }: { readonly status: Status }): { status: Status } {
  return { status };
}
