import { callSite } from '../common/call-site.js';
import { deepFreeze } from '../common/json.js';
import { type Mutable } from '../common/mutable.js';
import { type ConversationMessage, type MessageDraft } from '../ledger/message.js';
import { addUsage, subtractUsage, type TokenCounts, toTokenCounts, UNKNOWN_CALL } from '../common/token-counts.js';
import { type TurnOrchestration } from '../orchestration/turn-orchestration.js';
import { decisionSpan, intentSpan } from '../telemetry/call-spans.js';
import { type SpanOptions, type Telemetry } from '../telemetry/telemetry.js';
import { AwaitingSignal } from '../turn/turn-runner.js';
import { type TurnWait } from '../ledger/turn.store.js';
import { type TurnContext, type TurnTask } from './turn-context.js';
import { messagesOf, type TurnProgress } from './turn-progress.js';
import { type TurnSteps } from './turn-steps.js';
import { type UsageRole, type UsageTally } from './usage-tally.js';

/** The values that all calls of an attempt share. */
export interface AttemptContext extends Omit<
  TurnContext,
  'state' | 'history' | 'iteration' | 'feedback' | 'replies' | 'messages' | 'usage' | 'step' | 'waitFor' | 'task'
> {
  readonly task: TurnTask | undefined;
}

/** The place in a turn where a function of the orchestrator is called. */
export interface CallPlace {
  readonly iteration: number;
  /** Empty if the function is not an intent. */
  readonly intent: string;
  readonly role: UsageRole;
}

export interface Called<T> {
  readonly value: T;
  readonly durationMs: number;
  readonly usage?: TokenCounts;
}

/** Calls the functions of an orchestrator in one attempt of a turn, each with a separate context. */
export class TurnCalls {
  constructor(
    private readonly attempt: AttemptContext,
    private readonly history: (role: UsageRole) => readonly (ConversationMessage | MessageDraft)[],
    private readonly memo: TurnSteps,
    private readonly tally: UsageTally,
    private readonly orchestration: TurnOrchestration | null,
    private readonly telemetry: Telemetry,
  ) {}

  /**
   * Rejects once the attempt has been stopped, because its turn may have ended and the next one may be running.
   * @returns the function's result, or the wait that it reached
   */
  async call<T>(
    place: CallPlace,
    progress: TurnProgress,
    work: (turn: TurnContext) => Promise<T> | T,
  ): Promise<Called<T> | AwaitingSignal> {
    this.attempt.signal.throwIfAborted();
    const startedAt = performance.now();
    let usage: TokenCounts | undefined;
    const count = (tokens: TokenCounts): void => {
      usage = usage ? addUsage(usage, tokens) : tokens;
    };
    const run = (): Promise<T | AwaitingSignal> =>
      untilAwaitingSignal((suspend) => {
        const context = this.contextOf(place, progress, count, suspend);
        return this.memo.enter(() => work(context));
      });
    const part = partOf(place);
    let value: T | AwaitingSignal;
    this.memo.beginPart(part);
    try {
      value = await (this.telemetry.isAnswered ? this.telemetry.span(spanOf(place), run) : run());
    } catch (error) {
      this.memo.failPart(part, error);
      this.memo.warnOfUnused(place, true);
      throw error;
    } finally {
      this.memo.endPart(part);
    }
    if (value instanceof AwaitingSignal) return value;
    this.memo.warnOfUnused(place, false);
    return { value, durationMs: elapsed(startedAt), ...(usage ? { usage } : {}) };
  }

  private contextOf(
    { iteration, intent, role }: CallPlace,
    progress: TurnProgress,
    count: (tokens: TokenCounts) => void,
    suspend: (wait: TurnWait) => Promise<never>,
  ): TurnContext {
    const { attempt, memo } = this;
    const { state, replies, feedback } = progress;
    const place = { iteration, intent };
    const history = this.history(role);
    const step: TurnContext['step'] = (name, work, options) => {
      const site = callSite(step);
      return memo.hand('turn.step', () => memo.run(place, name, work, options, site), name);
    };
    const waitFor: TurnContext['waitFor'] = (name, options = {}) => {
      const site = callSite(waitFor);
      return memo.hand('turn.waitFor', () => memo.waitFor(place, name, options, suspend, site), name);
    };
    // Properties are listed by name, because spreading an object into another takes ten times as long. Values that all
    // calls of the attempt share are frozen.
    const context: Mutable<Omit<TurnContext, 'history'>> = {
      id: attempt.id,
      sessionId: attempt.sessionId,
      session: deepFreeze(attempt.session),
      input: deepFreeze(attempt.input),
      state: deepFreeze(state),
      turnIndex: attempt.turnIndex,
      iteration,
      messages: deepFreeze(messagesOf(progress)),
      replies: deepFreeze(replies),
      memories: attempt.memories,
      attempt: attempt.attempt,
      attributes: deepFreeze(attempt.attributes),
      context: attempt.context,
      signal: attempt.signal,
      tools: attempt.tools,
      usage: {
        add: (usage) => {
          memo.assertOutside('turn.usage.add', 'return the usage from the step, and add it afterwards');
          const { tokens, total } = this.tally.add({ role, ...memo.usagePlace(place) }, usage);
          count(tokens);
          if (total) this.orchestration?.countTokens(total);
        },
        beginCall: () => {
          const add = (tokens: TokenCounts): void => {
            count(tokens);
            const total = this.tally.addOnce(role, tokens);
            this.orchestration?.countTokens(total);
          };
          add(UNKNOWN_CALL);
          return (usage) => add(subtractUsage(toTokenCounts(usage), UNKNOWN_CALL));
        },
        repeatCall: (usage) => {
          // A step inside another one can be replayed more than once in an attempt.
          if (!memo.isInside) count(usage ? toTokenCounts(usage) : UNKNOWN_CALL);
        },
        assertWithinBudget: () => this.orchestration?.assertBudget(),
      },
      modules: attempt.modules,
      step,
      waitFor,
      emit: attempt.emit,
      flush: attempt.flush,
      emitted: attempt.emitted,
    };
    if (attempt.task) context.task = attempt.task;
    if (feedback !== undefined) context.feedback = feedback;
    return Object.freeze(withHistory(context, history));
  }
}

const history = Symbol('history');

/** Every context uses the same getter, so that all contexts share one hidden class of V8. */
const HISTORY: PropertyDescriptor = {
  enumerable: true,
  get(this: { readonly [history]: TurnContext['history'] }) {
    return deepFreeze(this[history]);
  },
};

/** Adds the history as a getter. It is large, so it is frozen only when a call reads it. */
function withHistory(context: Omit<TurnContext, 'history'>, value: TurnContext['history']): TurnContext {
  Object.defineProperty(context, history, { value });
  return Object.defineProperty(context, 'history', HISTORY) as TurnContext;
}

/** Returns the name of the called function for the log: `intent refund`. */
export function partOf({ intent, role }: Pick<CallPlace, 'intent' | 'role'>): string {
  if (role === 'intents') return `intent ${intent}`;
  return role === 'router' ? 'the route' : role;
}

function spanOf({ iteration, intent, role }: CallPlace): SpanOptions {
  if (role === 'intents') return intentSpan(intent, iteration);
  return decisionSpan(role === 'router' ? 'route' : role, iteration);
}

/** Runs work until it ends or awaits a signal. Work that awaits a signal never resolves, and is garbage-collected. */
function untilAwaitingSignal<T>(
  work: (suspend: (wait: TurnWait) => Promise<never>) => Promise<T> | T,
): Promise<T | AwaitingSignal> {
  return new Promise((resolve, reject) => {
    const suspend = (wait: TurnWait): Promise<never> => {
      resolve(new AwaitingSignal(wait));
      return new Promise<never>(() => {});
    };
    Promise.resolve(work(suspend)).then(resolve, reject);
  });
}

export function elapsed(since: number): number {
  return Math.round(performance.now() - since);
}
