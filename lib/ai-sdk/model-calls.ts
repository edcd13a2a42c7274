import { decode, encode } from '../chat/stored-value.js';
import { isFields, type JsonValue } from '../common/json.js';
import { withoutProxy } from '../common/thrown.js';
import { type TokenCountsInput } from '../common/token-counts.js';
import { type StepOptions } from '../orchestrator/call-options.js';
import { HandlerError } from '../ledger/handler.error.js';
import { type StepInfo, type TurnContext } from '../orchestrator/turn-context.js';
import { modelKeyRequired, promptMismatch } from './ai-sdk.errors.js';
import { type ModelPrompt, type PromptDigests } from './model-prompt.js';
import { withoutRetry } from './refused-access.js';
import { withRetryAfter } from './retry-after.js';
import { assertNotFailed } from './turn-failure.js';

/** The members of a turn that model calls use. */
export type ModelTurn = Pick<TurnContext, 'step' | 'signal' | 'usage'>;

/** A call of a model: how to make it, and how to store its answer. */
export interface ModelCall<Answer> {
  readonly prompt: ModelPrompt;
  /**
   * Asks the provider. Reports the usage when it arrives, because the call can still fail (AIS-36).
   * @param maxBytes the maximum size of the stored answer as JSON
   */
  readonly ask: (report: ReportUsage, maxBytes: number) => Promise<Answer>;
  /** Returns the part of the answer that is stored and replayed. */
  readonly storedPart: (answer: Answer) => unknown;
  /** Returns the usage in a stored answer. */
  readonly usageOf: (answer: Answer) => unknown;
}

/** Counts the usage of a call. Once a usage with tokens has arrived, later ones are ignored. */
export type ReportUsage = (usage: unknown) => void;

/** The stored result of the step of a call that succeeded. */
interface StoredAnswer {
  readonly prompt: PromptDigests;
  readonly answer: JsonValue;
}

/** The stored result of the step of a call that failed. */
interface StoredFailure {
  /** The id of the failed step, which is the key of its retry. */
  readonly failed: string;
}

type Stored = StoredAnswer | StoredFailure;

/** The answer or error of the provider in this attempt. Empty if the result of the step was replayed. */
interface Live<Answer> {
  answer?: Answer;
  failure?: { readonly error: unknown };
}

/**
 * Makes the model calls of one loop, for example of `generateText` with tools, stored steps of a turn. A later attempt
 * gets their answers without asking the provider. Each durable model and each `durableCalls` middleware has one.
 *
 * Calls are steps without a key: the turn numbers them in their order, and rejects parallel ones (FIX-02). A call that
 * fails has used its number, so its failure is stored as the result of its step. If the next call is the same, it is a
 * retry: a step whose key is the id of the failed step. The call with this number in a later attempt is a retry, too.
 * For example, the first call fails, and its retry and the second call succeed. In the next attempt, the first call
 * finds its failure and then the answer of its retry, and the second call finds its own answer.
 */
export class ModelCalls {
  /** The name of the steps. Loops with different keys have different names, so their calls are numbered separately. */
  private readonly step: string;
  /** The number of calls that were not retries, for messages of errors. */
  private count = 0;
  /** The previous call, if it failed: the id of its step, and its prompt to recognize a retry. */
  private failed: { readonly id: string; readonly prompt: PromptDigests } | null = null;

  constructor(
    private readonly turn: ModelTurn,
    /** The key that the application has given the loop, for loops that run in parallel. */
    private readonly key: string | undefined,
  ) {
    this.step = key === undefined ? 'model call' : `model call ${key}`;
  }

  /**
   * Returns the answer of the provider once it is stored, or the stored answer of an earlier attempt.
   * @throws what the provider throws; AnswerError (`MODEL_PROMPT_MISMATCH`), HandlerError
   * (`MODEL_KEY_REQUIRED`), TokenBudgetExceededError; errors of durable tools that must fail the attempt
   */
  async run<Answer>(call: ModelCall<Answer>): Promise<Answer> {
    assertNotFailed(this.turn);
    const { failed } = this;
    this.failed = null;
    const isRetry = failed !== null && call.prompt.differences(failed.prompt).length === 0;
    return isRetry ? this.retry(call, failed.id) : this.first(call);
  }

  /** Makes a call as the next numbered step. If an earlier attempt stored its failure, makes its retry. */
  private async first<Answer>(call: ModelCall<Answer>): Promise<Answer> {
    this.count += 1;
    const live: Live<Answer> = {};
    const stored = await this.runStep(async ({ key: id, maxBytes }) => {
      try {
        return await this.ask(call, live, maxBytes);
      } catch (error) {
        // The attempt ends here. Without a stored failure, the next attempt makes the call under the same number.
        if (this.turn.signal.aborted) throw error;
        live.failure = { error };
        return { failed: id };
      }
    });
    if ('answer' in stored) return this.read(call, stored, live);
    if (!live.failure) return this.retry(call, stored.failed);
    this.failed = { id: stored.failed, prompt: call.prompt.digests };
    throw live.failure.error;
  }

  /**
   * Makes a failed call again, as a step with a key. A failure is not stored here: the next retry has the same key.
   * @param id the id of the failed step
   */
  private async retry<Answer>(call: ModelCall<Answer>, id: string): Promise<Answer> {
    const live: Live<Answer> = {};
    try {
      const stored = await this.runStep(({ maxBytes }) => this.ask(call, live, maxBytes), { key: id });
      return this.read(call, stored as StoredAnswer, live);
    } catch (error) {
      this.failed = { id, prompt: call.prompt.digests };
      throw error;
    }
  }

  /** Asks the provider, in the work of a step. The call counts as one with unknown tokens until it reports them. */
  private async ask<Answer>(call: ModelCall<Answer>, live: Live<Answer>, maxBytes: number): Promise<StoredAnswer> {
    this.turn.usage.assertWithinBudget();
    const countTokens = this.turn.usage.beginCall();
    let isCounted = false;
    const report: ReportUsage = (usage) => {
      const tokens = isCounted ? undefined : toUsage(usage);
      if (!tokens) return;
      countTokens(tokens);
      isCounted = true;
    };
    try {
      live.answer = await call.ask(report, maxBytes);
    } catch (error) {
      throw withoutRetry(withRetryAfter(withoutProxy(error)));
    }
    return { prompt: call.prompt.digests, answer: encode(call.storedPart(live.answer)) };
  }

  /**
   * Returns the answer of this attempt, which has the parts that are not stored, such as headers. If the step was
   * replayed, returns the stored answer.
   */
  private read<Answer>({ prompt, usageOf }: ModelCall<Answer>, stored: StoredAnswer, live: Live<Answer>): Answer {
    if (live.answer !== undefined) return live.answer;
    const differences = prompt.differences(stored.prompt);
    if (differences.length > 0) throw promptMismatch(this.key, this.count, differences);
    const answer = decode(stored.answer) as Answer;
    this.turn.usage.repeatCall(toUsage(usageOf(answer)));
    return answer;
  }

  private async runStep(work: (info: StepInfo) => Promise<Stored>, options?: StepOptions): Promise<Stored> {
    try {
      return await this.turn.step(this.step, work, options);
    } catch (error) {
      const isParallel = HandlerError.isInstance(error) && error.code === 'STEP_KEY_REQUIRED';
      if (isParallel) throw modelKeyRequired(this.key, { cause: error });
      throw error;
    }
  }
}

/**
 * Returns the tokens of an answer; `undefined` if the provider sent none. A count is a number in version 2 of the model
 * specification, and an object with a `total` in later versions.
 */
function toUsage(usage: unknown): TokenCountsInput | undefined {
  const { inputTokens, outputTokens, totalTokens } = Object(usage) as TokenCountsInput;
  const counts = [inputTokens, outputTokens, totalTokens].map((count) => (isFields(count) ? count.total : count));
  return counts.some((count) => Number.isFinite(count)) ? { inputTokens, outputTokens, totalTokens } : undefined;
}
