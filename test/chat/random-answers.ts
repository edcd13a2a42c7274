import fc from 'fast-check';
import { type AnyUIMessage, type UIChunk } from '../../lib/chat/ui-message.js';

/** The output of a model and its tools in a step. A step without calls is the last. */
interface Step {
  readonly blocks: readonly Block[];
  readonly sources: readonly string[];
  readonly files: readonly string[];
  /** The values of a data part with an id, one after the other. */
  readonly data: readonly number[];
  readonly metadata: number;
  readonly calls: readonly Call[];
  /** How approvals wait: the model loop ends (`outside`), or the tool waits (`inside`). */
  readonly waits: 'outside' | 'inside';
}

interface Block {
  readonly kind: 'text' | 'reasoning';
  readonly text: string;
  /** Sent with the start, an empty delta, or the end. */
  readonly metadata?: { readonly at: 'start' | 'delta' | 'end'; readonly value: number };
}

interface Call {
  readonly input: number;
  readonly needsApproval: boolean;
  readonly preliminary: readonly number[];
  readonly outcome: { readonly output: number } | { readonly errorText: string };
}

/** The work of an attempt until it is killed. */
export interface Attempt {
  /** The answer if the model is called again. */
  readonly steps: readonly Step[];
  /** Metadata of the message. */
  readonly metadata: number;
  /** Decides the size of deltas, and the order of parallel outputs. */
  readonly rolls: readonly number[];
  /** The number of chunks that the attempt writes, as a share of its chunks. */
  readonly killedAt: number;
  /** The number of written chunks that were not stored. */
  readonly lost: number;
}

/** Short texts; one often begins with another. */
const text = fc.string({ unit: fc.constantFrom('a', 'a', 'a', 'b'), maxLength: 5 });
const few = fc.nat({ max: 2 });

const block: fc.Arbitrary<Block> = fc.record(
  {
    kind: fc.constantFrom('text' as const, 'reasoning' as const),
    text,
    metadata: fc.record({ at: fc.constantFrom('start' as const, 'delta' as const, 'end' as const), value: few }),
  },
  { requiredKeys: ['kind', 'text'] },
);

const call: fc.Arbitrary<Call> = fc.record({
  input: few,
  needsApproval: fc.boolean(),
  preliminary: fc.array(few, { maxLength: 2 }),
  outcome: fc.oneof(fc.record({ output: few }), fc.record({ errorText: text })),
});

const step: fc.Arbitrary<Step> = fc.record({
  blocks: fc.array(block, { maxLength: 3 }),
  sources: fc.array(text, { maxLength: 2 }),
  files: fc.array(text, { maxLength: 1 }),
  data: fc.array(few, { minLength: 1, maxLength: 2 }),
  metadata: few,
  calls: fc.array(call, { maxLength: 3 }),
  waits: fc.constantFrom('outside' as const, 'inside' as const),
});

const steps = fc.array(step, { minLength: 1, maxLength: 3 });
const rolls = fc.array(fc.nat({ max: 7 }), { minLength: 1, maxLength: 8 });
/** Less than all. Doubles would mostly be near 0. */
const share = fc.nat({ max: 999 }).map((n) => n / 1000);
const lost = fc.nat({ max: 4 });

/** Attempts of a turn whose model answers every call differently. The last one finishes the answer. */
export const differentAttempts: fc.Arbitrary<Attempt[]> = fc.array(
  fc.record({ steps, metadata: few, rolls, killedAt: share, lost }),
  { minLength: 1, maxLength: 5, size: 'max' },
);

/** Attempts of a turn whose model always gives the same answer. */
export const equalAttempts: fc.Arbitrary<Attempt[]> = fc.tuple(steps, few).chain(([same, metadata]) => {
  const killedAt = fc.oneof(share, fc.constant(1));
  const attempt = fc.record({ steps: fc.constant(same), metadata: fc.constant(metadata), rolls, killedAt, lost });
  return fc.array(attempt, { minLength: 1, maxLength: 5, size: 'max' });
});

/** A chunk, and the steps that are stored once the attempt has passed it. */
interface Written {
  readonly chunk: UIChunk;
  /** The index of the step whose model call is stored. */
  readonly storesModel?: number;
  /** The step and call whose outcome is stored. */
  readonly storesOutcome?: readonly [step: number, call: number];
  /** Set where a step or a response ends. */
  readonly isEnd?: true;
}

interface Filter {
  readonly message: AnyUIMessage;
  write(chunk: UIChunk): UIChunk[];
}

export interface Turn {
  /** All chunks that the last attempt writes. */
  readonly own: readonly UIChunk[];
  /** All stored chunks. */
  readonly stored: readonly UIChunk[];
  /** The message of the last attempt's filter. */
  readonly message: AnyUIMessage;
}

/**
 * Runs the attempts of a turn, the last one to its end. Model calls and tool results are stored as steps when an attempt
 * has passed them, even if their chunks were lost. Without steps, an attempt repeats only what is before the last end of
 * a step or a response.
 * @param filter creates the filter of an attempt from the stored chunks
 */
export function runTurn(
  attempts: readonly Attempt[],
  filter: (stored: readonly UIChunk[]) => Filter,
  hasSteps = true,
): Turn {
  let stored: readonly UIChunk[] = [];
  let known: readonly Step[] = [];
  let outcomes: ReadonlyMap<string, Call['outcome']> = new Map();
  for (const [index, attempt] of attempts.entries()) {
    const isLast = index === attempts.length - 1;
    const answer = completed([...known, ...attempt.steps.slice(known.length)], outcomes, hasSteps);
    const all = writtenBy(answer, known.length, attempt, index);
    const done = isLast ? all : all.slice(0, Math.floor(attempt.killedAt * all.length));

    const current = filter(stored);
    const sent = done.flatMap(({ chunk }) => current.write(chunk));
    stored = [...stored, ...(isLast ? sent : sent.slice(0, Math.max(0, sent.length - attempt.lost)))];
    if (isLast) return { own: all.map(({ chunk }) => chunk), stored, message: current.message };

    const certain = hasSteps ? done : done.slice(0, done.findLastIndex(({ isEnd }) => isEnd) + 1);
    const models = certain.flatMap(({ storesModel }) => storesModel ?? []);
    known = answer.slice(0, Math.max(known.length, ...models.map((at) => at + 1)));
    const ended = certain.flatMap(({ storesOutcome }) => (storesOutcome ? [storesOutcome] : []));
    outcomes = new Map([...outcomes, ...ended.map(([at, n]) => [`${at},${n}`, answer[at].calls[n].outcome] as const)]);
  }
  throw new Error('A turn has at least one attempt.');
}

/** Ends an answer with a step without calls, and uses the stored outcomes of tools. */
function completed(given: readonly Step[], outcomes: ReadonlyMap<string, Call['outcome']>, hasSteps: boolean): Step[] {
  const end = given.findIndex(({ calls }) => calls.length === 0);
  const last = given[given.length - 1];
  const all = end === -1 ? [...given, { ...last, calls: [] }] : given.slice(0, end + 1);
  return all.map((each, at) => ({
    ...each,
    calls: each.calls.map((call, n) => ({
      ...call,
      outcome: outcomes.get(`${at},${n}`) ?? call.outcome,
      // Attempts that ask again ask for the same approvals.
      needsApproval: hasSteps ? call.needsApproval : n === 1,
    })),
  }));
}

/** Returns the chunks of an attempt. Steps that are stored come with one delta per block. */
function writtenBy(
  answer: readonly Step[],
  stored: number,
  { rolls, metadata: first }: Attempt,
  attempt: number,
): Written[] {
  let count = 0;
  const roll = (max: number) => rolls[count++ % rolls.length] % max;
  const list: Written[] = [];
  const push = (chunk: UIChunk, more: Omit<Written, 'chunk'> = {}) => list.push({ chunk, ...more });

  push({ type: 'start', messageId: 'turn', messageMetadata: { first } });
  for (const [at, { blocks, sources, files, data, metadata, calls, waits }] of answer.entries()) {
    push({ type: 'start-step' }, { isEnd: true });
    push({ type: 'message-metadata', messageMetadata: { step: { [at]: metadata } } });
    for (const [n, each] of blocks.entries()) {
      for (const chunk of chunksOf(each, `${attempt}-${n}`, at < stored ? () => 5 : () => 1 + roll(3))) push(chunk);
    }
    for (const url of sources) push({ type: 'source-url', sourceId: url, url });
    for (const url of files) push({ type: 'file', url, mediaType: 'image/png' });
    for (const value of data) push({ type: 'data-progress', id: `d${at % 2}`, data: value });

    const ids = calls.map((_, n) => `call-${at}-${n}`);
    for (const [n, { input }] of calls.entries()) {
      const call = { toolCallId: ids[n], toolName: 'tool' };
      const inputText = JSON.stringify({ input });
      push({ type: 'tool-input-start', ...call }, { storesModel: at });
      for (let from = 0, size = 1 + roll(8); from < inputText.length; from += size) {
        push({ type: 'tool-input-delta', toolCallId: ids[n], inputTextDelta: inputText.slice(from, from + size) });
      }
      push({ type: 'tool-input-available', ...call, input: { input } });
    }
    const output = (n: number) => {
      const { preliminary, outcome } = calls[n];
      for (const value of preliminary) {
        push({ type: 'tool-output-available', toolCallId: ids[n], output: value, preliminary: true });
      }
      const type = 'output' in outcome ? 'tool-output-available' : 'tool-output-error';
      push({ type, toolCallId: ids[n], ...outcome }, { storesOutcome: [at, n] });
    };
    const inAnyOrder = (needsApproval: boolean) => {
      const numbers = [...calls.keys()].filter((n) => calls[n].needsApproval === needsApproval);
      return roll(2) === 0 ? numbers : numbers.reverse();
    };
    inAnyOrder(false).forEach(output);
    const waiting = inAnyOrder(true);
    if (waiting.length > 0) {
      for (const n of waiting) {
        push({ type: 'tool-approval-request', toolCallId: ids[n], approvalId: `${attempt}-${ids[n]}` });
      }
      if (waits === 'outside') push({ type: 'finish-step' });
      push({ type: 'finish' }, { isEnd: true });
      push({ type: 'start', messageId: 'turn' });
      for (const n of waiting) {
        push({ type: 'tool-approval-response', approvalId: `${attempt}-${ids[n]}`, approved: true });
      }
      waiting.forEach(output);
    }
    if (waiting.length === 0 || waits === 'inside') push({ type: 'finish-step' }, { storesModel: at });
  }
  push({ type: 'finish', messageMetadata: { steps: answer.length } });
  return list;
}

function chunksOf({ kind, text: whole, metadata }: Block, id: string, size: () => number): UIChunk[] {
  const meta = (at: 'start' | 'delta' | 'end') =>
    metadata?.at === at ? { providerMetadata: { p: { value: metadata.value } } } : {};
  const chunks: UIChunk[] = [{ type: `${kind}-start`, id, ...meta('start') }];
  for (let rest = whole, n = size(); rest !== ''; rest = rest.slice(n), n = size()) {
    chunks.push({ type: `${kind}-delta`, id, delta: rest.slice(0, n) });
  }
  if (metadata?.at === 'delta') chunks.push({ type: `${kind}-delta`, id, delta: '', ...meta('delta') });
  return [...chunks, { type: `${kind}-end`, id, ...meta('end') }];
}
