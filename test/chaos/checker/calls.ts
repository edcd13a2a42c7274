import {
  type Completion,
  type Entry,
  type Invocation,
  type OperationName,
  type Operations,
} from '../history/history.js';

/** A call from its invocation to its completion. It took effect at one time in between, or never. */
export type Call<Op extends OperationName = OperationName> = {
  [Name in Op]: {
    readonly op: Name;
    readonly process: string;
    readonly call: number;
    readonly args: Operations[Name]['args'];
    readonly sentAt: number;
    /** The earliest time of the effect: `sentAt`, or that of an earlier call with unknown outcome that this one repeats. */
    readonly firstSentAt: number;
    /** The latest time of the effect; Infinity if the outcome is unknown. */
    readonly answeredAt: number;
  } & Outcome<Operations[Name]['value']>;
}[Op];

type Outcome<Value> =
  | { readonly outcome: 'ok'; readonly value: Value }
  /** `fail`: certainly without effect. */
  | { readonly outcome: 'fail' | 'unknown'; readonly error?: string };

/** A successful call. */
export type DoneCall<Op extends OperationName = OperationName> = {
  [Name in Op]: Extract<Call<Name>, { outcome: 'ok' }>;
}[Op];

export function isDone<Op extends OperationName>(call: Call<Op>): call is DoneCall<Op> & Call<Op> {
  return call.outcome === 'ok';
}

/** Returns whether the call took effect or may have. */
export function mayBeDone(call: Call): boolean {
  return call.outcome !== 'fail';
}

/**
 * Pairs every invocation with its completion, in the order of invocation. Calls without a completion are unknown.
 * @throws Error if the history is invalid
 */
export function pairCalls(entries: readonly Entry[]): Call[] {
  const completions = completionsOf(entries);
  const repeats = new Map<string, number>();
  const calls: Call[] = [];
  const invocations = entries.filter((entry) => entry.type === 'invoke').sort((a, b) => a.at - b.at);
  for (const invocation of invocations) {
    const { op, process, call, args, at: sentAt } = invocation;
    const completion = completions.get(nameOf(invocation));
    completions.delete(nameOf(invocation));
    if (completion && completion.at < sentAt) throw new Error(`${nameOf(invocation)} ends before it begins.`);
    const repeated = repeatOf(invocation);
    const firstSentAt = (repeated !== null && repeats.get(repeated)) || sentAt;
    const outcome = outcomeOf(completion);
    if (repeated !== null && outcome.outcome === 'unknown') repeats.set(repeated, firstSentAt);
    const answeredAt = completion && outcome.outcome !== 'unknown' ? completion.at : Infinity;
    calls.push({ op, process, call, args, sentAt, firstSentAt, answeredAt, ...outcome } as Call);
  }
  const [orphan] = completions.keys();
  if (orphan !== undefined) throw new Error(`${orphan} ends without having begun.`);
  return calls;
}

function completionsOf(entries: readonly Entry[]): Map<string, Completion> {
  const completions = new Map<string, Completion>();
  for (const entry of entries) {
    if (entry.type === 'invoke' || entry.type === 'note') continue;
    if (completions.has(nameOf(entry))) throw new Error(`${nameOf(entry)} ends twice.`);
    completions.set(nameOf(entry), entry);
  }
  return completions;
}

function nameOf({ process, call }: Invocation | Completion): string {
  return `Call ${call} of ${process}`;
}

function outcomeOf(completion: Completion | undefined): Outcome<unknown> {
  if (!completion) return { outcome: 'unknown' };
  if (completion.type === 'ok') return { outcome: 'ok', value: completion.value };
  return { outcome: completion.type, ...(completion.error === undefined ? {} : { error: completion.error }) };
}

/**
 * Returns a key that is equal for a call and its repeat, which may get the answer of the first. Claims and renewals
 * are never repeats.
 */
function repeatOf({ op, process, args }: Invocation): string | null {
  switch (op) {
    case 'settle':
    case 'retry':
    case 'release':
    case 'wait':
    case 'saveStep':
    case 'append':
      return `${process} ${op} ${JSON.stringify(args)}`;
    default:
      return null;
  }
}
