import { decode, encode } from '../chat/stored-value.js';
import { isFields, type JsonValue } from '../common/json.js';
import { withoutProxy } from '../common/thrown.js';
import { type TokenCountsInput } from '../common/token-counts.js';
import { type StepOptions } from '../orchestrator/call-options.js';
import { HandlerError } from '../ledger/handler.error.js';
import { type StepInfo, type TurnContext } from '../orchestrator/turn-context.js';
import { modelKeyRequired, promptMismatch } from './ai-sdk.errors.js';
import { type ModelPrompt, type PromptDigests } from './model-prompt.js';
import { withRetryAfter } from './retry-after.js';
import { assertNotFailed } from './turn-failure.js';

/** The members of a turn that model calls use. */
export type ModelTurn = Pick<TurnContext, 'step' | 'signal' | 'usage'>;

/** A call of a model, and how its answer is stored. */
export interface ModelCall<Answer> {
  readonly prompt: ModelPrompt;
  /**
   * Asks the provider. Reports the usage when it arrives, because the answer can still fail (AIS-36).
   * @param maxBytes the maximum size of the stored answer as JSON
   */
  readonly ask: (report: ReportUsage, maxBytes: number) => Promise<Answer>;
  /** Returns the part of the answer that is stored and replayed. */
  readonly storedPart: (answer: Answer) => unknown;
  /** Returns the usage in a stored answer. */
  readonly usageOf: (answer: Answer) => unknown;
}

/** Takes the usage of an answer. */
export type ReportUsage = (usage: unknown) => void;

interface StoredAnswer {
  readonly prompt: PromptDigests;
  readonly answer: JsonValue;
}

/** Stored for a call that failed. */
interface StoredFailure {
  /** The id of the failed step, which is the key of its retry. */
  readonly failed: string;
}

type Stored = StoredAnswer | StoredFailure;

/** The outcome of a call if it was made in this attempt. */
interface Live<Answer> {
  answer?: Answer;
  failure?: { readonly error: unknown };
}

/**
 * The calls of a model in one loop. Each is a step of the turn, which numbers them in their order and rejects parallel
 * ones with the same key (FIX-02).
 *
 * A call that fails has used its number, so the failure is stored too. If the loop makes the same call again, it is the
 * retry of that step, in this attempt or a later one. It is a step with a key, and does not use a number.
 */
export class ModelCalls {
  private readonly step: string;
  private count = 0;
  /** The previous call, if it failed. */
  private failed: { readonly id: string; readonly prompt: PromptDigests } | null = null;

  constructor(
    private readonly turn: ModelTurn,
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

  private async first<Answer>(call: ModelCall<Answer>): Promise<Answer> {
    this.count += 1;
    const live: Live<Answer> = {};
    const stored = await this.runStep(async ({ key: id, maxBytes }) => {
      try {
        return await this.ask(call, live, maxBytes);
      } catch (error) {
        // The attempt ends here, so the number is free.
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

  private async ask<Answer>(call: ModelCall<Answer>, live: Live<Answer>, maxBytes: number): Promise<StoredAnswer> {
    this.turn.usage.assertWithinBudget();
    const count = this.turn.usage.beginCall();
    let isCounted = false;
    const report: ReportUsage = (usage) => {
      const tokens = isCounted ? undefined : toUsage(usage);
      if (!tokens) return;
      count(tokens);
      isCounted = true;
    };
    try {
      live.answer = await call.ask(report, maxBytes);
    } catch (error) {
      throw withRetryAfter(withoutProxy(error));
    }
    return { prompt: call.prompt.digests, answer: encode(call.storedPart(live.answer)) };
  }

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
      const isRepeated = HandlerError.isInstance(error) && error.code === 'STEP_KEY_REQUIRED';
      if (isRepeated) throw modelKeyRequired(this.key, { cause: error });
      throw error;
    }
  }
}

/**
 * Returns the tokens of an answer, which the specification versions name differently; `undefined` if the provider sent
 * none.
 */
function toUsage(usage: unknown): TokenCountsInput | undefined {
  const { inputTokens, outputTokens, totalTokens } = Object(usage) as TokenCountsInput;
  const counts = [inputTokens, outputTokens, totalTokens].map((count) => (isFields(count) ? count.total : count));
  return counts.some((count) => Number.isFinite(count)) ? { inputTokens, outputTokens, totalTokens } : undefined;
}
