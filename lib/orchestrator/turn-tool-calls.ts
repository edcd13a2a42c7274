import { type CallSite, callSite, showAt } from '../common/call-site.js';
import { checkInput } from '../common/check-input.js';
import { assertName, problemOf } from '../common/ids.js';
import { deepFreeze, toJson } from '../common/json.js';
import { jsonDigest } from '../common/digests.js';
import { InvalidInputError } from '../common/sessions.error.js';
import { type AIOrchestrationState, toAIState } from '../orchestration/ai-orchestration-state.js';
import { type OrchestrationStep } from '../orchestration/orchestration-config.js';
import { NO_PROGRESS, type OrchestrationProgress } from '../orchestration/orchestration-state.js';
import { toolCallConflict, ToolFailedError, ToolNotAllowedError } from '../orchestration/orchestration.errors.js';
import { isSameCall } from '../orchestration/tool-call.js';
import { type TurnOrchestration } from '../orchestration/turn-orchestration.js';
import { toolSpan } from '../telemetry/call-spans.js';
import { callName, type StepKey, stepText } from '../ledger/turn-step.js';
import { ToolCallOptions } from './call-options.js';
import { CallOrder } from './call-order.js';
import { assertToolInput, type StateSchema } from './state-schema.js';
import { type ToolResult, toolResult } from './tool-result.js';
import { type StepInfo, type TurnTools } from './turn-context.js';
import { type TurnSteps } from './turn-steps.js';

/** The tool and input that a call id identifies. */
interface CallIdentity {
  readonly tool: string;
  /** The digest of the input. */
  readonly input?: string;
}

/** A call that this attempt has begun. */
interface BegunCall {
  readonly identity: CallIdentity;
  readonly result: Promise<unknown>;
  hasEnded: boolean;
}

/** The stored step of a call. */
interface StoredCall extends CallIdentity, ToolResult {
  /** Present if the plan rejected the call and its failure is stored. */
  readonly rejection?: Rejection;
}

type Rejection = Pick<ToolNotAllowedError, 'sessionId' | 'step' | 'allowed' | 'denied'>;

/** The tool calls in one attempt of a turn. */
export class TurnToolCalls implements TurnTools {
  /** By the name and key of their step. */
  private readonly calls = new Map<string, BegunCall>();
  private readonly order = new CallOrder();

  constructor(
    private readonly steps: TurnSteps,
    private readonly orchestration: TurnOrchestration | null,
  ) {}

  get activeStep(): OrchestrationStep | undefined {
    return this.orchestration?.activeStep;
  }

  get state(): OrchestrationProgress {
    return deepFreeze(this.orchestration?.state ?? NO_PROGRESS);
  }

  allowed(tools: readonly string[]): string[] {
    return this.orchestration ? this.orchestration.allowed(tools) : [...tools];
  }

  toAIOrchestrationState(): AIOrchestrationState {
    return deepFreeze(this.orchestration ? this.orchestration.toAIState() : toAIState(NO_PROGRESS, undefined));
  }

  use<T>(
    tool: string,
    callId: string,
    work: (info: StepInfo) => Promise<T> | T,
    options?: ToolCallOptions,
  ): Promise<T> {
    const site = callSite();
    return this.steps.hand('turn.tools.use', () => this.call(tool, callId, work, options, site), tool);
  }

  /** Throws if the call is rejected before it starts. */
  private call<T>(
    tool: string,
    callId: string,
    work: (info: StepInfo) => Promise<T> | T,
    options: ToolCallOptions | undefined,
    site: CallSite,
  ): Promise<T> {
    this.steps.assertOutside('turn.tools.use', 'call it outside of the step');
    assertName(tool, 'tool');
    assertCallId(callId, 'callId');
    const {
      input,
      schema,
      answer,
      storeFailure = false,
    } = options === undefined ? {} : checkInput(ToolCallOptions, options, 'options');
    const identity = identityOf(tool, input);
    const key = this.keyOf(callId, answer, identity);
    const begun = this.calls.get(stepText(key));
    if (begun) return begun.result as Promise<T>;
    const orFailure = (info: StepInfo): Promise<ToolResult> =>
      toolResult({ tool, turnId: this.steps.turnId }, work, info);
    const admit = (): Promise<() => Promise<T>> =>
      storeFailure
        ? this.admitOnce(identity, callId, key, () => this.admit<T>(identity, callId, key, orFailure, site), site)
        : this.admit<T>(identity, callId, key, succeeded(work), site);
    const result = this.order.next(
      () => this.orchestration?.isSequenced === true,
      schema ? () => this.assertInput(schema, input, key).then(admit) : admit,
    );
    const call: BegunCall = { identity, result, hasEnded: false };
    this.calls.set(stepText(key), call);
    // A call that was rejected or failed can be repeated.
    result.then(
      () => (call.hasEnded = true),
      () => this.calls.delete(stepText(key)),
    );
    return result;
  }

  /**
   * Returns the key of a call. It belongs to the turn, not to an iteration or intent. An id that returns with another
   * input, after its earlier call has ended, identifies another call (FIX-63).
   * @throws HandlerError (`TOOL_CALL_CONFLICT`)
   */
  private keyOf(callId: string, answer: number | undefined, identity: CallIdentity): StepKey {
    this.assertOneUse(callId, answer, identity);
    for (let occurrence = 0; ; occurrence += 1) {
      const key = callKey(callId, answer, occurrence);
      const begun = this.calls.get(stepText(key));
      const known = this.knownAt(key);
      if (!known || isSameCall(known, identity)) return key;
      const isAnother = known.input !== undefined && identity.input !== undefined && begun?.hasEnded !== false;
      if (!isAnother) throw toolCallConflict(callId, known.tool);
    }
  }

  /** A call without `answer` and that of answer 0 are the same use in the plan's state. @throws as {@link keyOf} */
  private assertOneUse(callId: string, answer: number | undefined, identity: CallIdentity): void {
    if (!this.orchestration || (answer ?? 0) !== 0) return;
    const known = this.knownAt(callKey(callId, answer === undefined ? 0 : undefined, 0));
    if (known && !isSameCall(known, identity)) throw toolCallConflict(callId, known.tool);
  }

  private knownAt(key: StepKey): CallIdentity | undefined {
    return this.calls.get(stepText(key))?.identity ?? (this.steps.find(key) as StoredCall | undefined);
  }

  /** Validates the input of a call whose result is not stored. @throws InvalidInputError */
  private async assertInput(schema: StateSchema, input: unknown, key: StepKey): Promise<void> {
    if (!this.steps.isStored(key)) await assertToolInput(schema, input, 'options.input');
  }

  /**
   * Admits a call, or stores its rejection: in a later attempt the plan could admit it, because the plan then knows the
   * uses that followed it in this one.
   */
  private async admitOnce<T>(
    { tool, input }: CallIdentity,
    callId: string,
    key: StepKey,
    admit: () => Promise<T>,
    site: CallSite,
  ): Promise<T> {
    const { rejection } = (this.steps.find(key) as StoredCall | undefined) ?? {};
    if (rejection) throw rejectionOf(tool, rejection);
    try {
      return await admit();
    } catch (error) {
      if (!ToolNotAllowedError.isInstance(error)) throw error;
      const { sessionId, step, allowed, denied } = error;
      const stored = {
        tool,
        ...(input === undefined ? {} : { input }),
        rejection: { sessionId, step, allowed, denied },
      };
      await this.steps.runAt<StoredCall>(key, toolSpan(tool, callId), async () => stored, site);
      throw error;
    }
  }

  /** @param work returns what is stored of the call. @returns the work of an admitted use */
  private async admit<T>(
    identity: CallIdentity,
    callId: string,
    key: StepKey,
    work: (info: StepInfo) => Promise<ToolResult>,
    site: CallSite,
  ): Promise<() => Promise<T>> {
    const { steps, orchestration } = this;
    const { tool, input } = identity;
    const store = async (info: StepInfo): Promise<StoredCall> => {
      const result = await work(info);
      assertJsonResult(tool, result, site);
      return input === undefined ? { tool, ...result } : { tool, input, ...result };
    };
    const run = (): Promise<StoredCall> => steps.runAt(key, toolSpan(tool, callId), store, site);
    const use = await orchestration?.admit(tool, useIdOf(key), steps.isStored(key));
    return async () => {
      let stored: StoredCall;
      try {
        stored = await run();
      } catch (error) {
        if (use) await orchestration?.complete(use, 'failed');
        throw error;
      }
      const { failure, rejection } = stored;
      if (rejection) throw rejectionOf(tool, rejection);
      if (use) await orchestration?.complete(use, failure === undefined ? 'succeeded' : 'failed');
      if (failure !== undefined) throw new ToolFailedError(tool, callId, failure);
      // Every call with this id gets the same result.
      return deepFreeze(stored.value ?? null) as T;
    };
  }
}

/** @throws InvalidInputError */
export function assertCallId(callId: unknown, path: string): void {
  if (typeof callId !== 'string' || callId === '') {
    throw new InvalidInputError(
      path,
      problemOf('must be a non-empty string: the id that the model gave to the call.', callId),
    );
  }
}

/** @throws StateSerializationError, which names the tool */
function assertJsonResult(tool: string, { value }: ToolResult, site: CallSite): void {
  try {
    if (value !== undefined) toJson(value, `The result of tool ${JSON.stringify(tool)}`);
  } catch (error) {
    showAt(error, site);
    throw error;
  }
}

/** Returns the key of a call's step. Stores limit the names of steps, but gateways do not limit ids. */
function callKey(callId: string, answer: number | undefined, occurrence: number): StepKey {
  const key = answer === undefined ? occurrence : `answer ${answer}${occurrence === 0 ? '' : ` ${occurrence}`}`;
  return { kind: 'tool', iteration: 0, intent: '', parent: '', name: callName(callId), key };
}

/** Returns the id of a call in the plan's state: the model's, unless it is long or used again. */
function useIdOf({ name, key }: StepKey): string {
  return key === 0 || key === 'answer 0' ? name : callName(`${name} ${key}`);
}

function rejectionOf(tool: string, { sessionId, step, allowed, denied }: Rejection): ToolNotAllowedError {
  return new ToolNotAllowedError(sessionId, tool, step, allowed, denied);
}

type Work<T> = (info: StepInfo) => Promise<T> | T;

function succeeded(work: Work<unknown>): (info: StepInfo) => Promise<ToolResult> {
  return async (info) => ({ value: await work(info) });
}

function identityOf(tool: string, input: unknown): CallIdentity {
  return input === undefined ? { tool } : { tool, input: jsonDigest(input, 'options.input') };
}
