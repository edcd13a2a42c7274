import { checkInput } from '../common/check-input.js';
import { assertName } from '../common/ids.js';
import { deepFreeze } from '../common/json.js';
import { jsonDigest } from '../common/json-digest.js';
import { type AIOrchestrationState, toAIState } from '../orchestration/ai-orchestration-state.js';
import { type OrchestrationStep } from '../orchestration/orchestration-config.js';
import { NO_PROGRESS, type OrchestrationProgress } from '../orchestration/orchestration-state.js';
import { ToolCallConflictError } from '../orchestration/orchestration.errors.js';
import { type TurnOrchestration } from '../orchestration/turn-orchestration.js';
import { toolSpan } from '../telemetry/call-spans.js';
import { type StepKey } from '../ledger/turn-step.js';
import { ToolCallOptions } from './call-options.js';
import { CallOrder } from './call-order.js';
import { type StepInfo, type TurnTools } from './turn-context.js';
import { type TurnSteps } from './turn-steps.js';

/** What a call's id stands for. */
interface CallIdentity {
  readonly tool: string;
  /** Digest of its input. */
  readonly input?: string;
}

/** The stored step of a call. */
interface StoredCall extends CallIdentity {
  readonly value?: unknown;
}

/** The calls of tools in one attempt of a turn. */
export class TurnToolCalls implements TurnTools {
  private readonly calls = new Map<string, { readonly identity: CallIdentity; readonly result: Promise<unknown> }>();
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
    return this.steps.hand('turn.tools.use', () => this.call(tool, callId, work, options));
  }

  /** Throws for a call that is refused at once. */
  private call<T>(
    tool: string,
    callId: string,
    work: (info: StepInfo) => Promise<T> | T,
    options?: ToolCallOptions,
  ): Promise<T> {
    this.steps.assertOutside('turn.tools.use', 'call it beside the step, or after it');
    assertName(tool, 'tool');
    assertName(callId, 'callId');
    const identity = identityOf(tool, options);
    const known = this.calls.get(callId);
    if (known) {
      assertSame(callId, known.identity, identity);
      return known.result as Promise<T>;
    }
    const result = this.order.next(
      () => this.orchestration?.isSequenced === true,
      () => this.admit(identity, callId, work),
    );
    this.calls.set(callId, { identity, result });
    // What did not happen may be called again.
    result.catch(() => this.calls.delete(callId));
    return result;
  }

  /** @returns the work of a use that counts from now on */
  private async admit<T>(
    identity: CallIdentity,
    callId: string,
    work: (info: StepInfo) => Promise<T> | T,
  ): Promise<() => Promise<T>> {
    const { steps, orchestration } = this;
    const { tool, input } = identity;
    const key = keyOf(callId);
    const known = steps.find(key) as StoredCall | undefined;
    if (known) assertSame(callId, known, identity);
    const run = (): Promise<StoredCall> =>
      steps.runAt(key, toolSpan(tool, callId), async (info) => {
        const value = await work(info);
        return input === undefined ? { tool, value } : { tool, input, value };
      });
    const use = await orchestration?.admit(tool, callId, known !== undefined);
    return async () => {
      let stored: StoredCall;
      try {
        stored = await run();
      } catch (error) {
        if (use) await orchestration?.complete(use, 'failed');
        throw error;
      }
      if (use) await orchestration?.complete(use, 'succeeded');
      // Every call with this id gets the same result.
      return deepFreeze(stored.value ?? null) as T;
    };
  }
}

/** A call is the turn's, whatever iteration or intent makes it. */
function keyOf(callId: string): StepKey {
  return { kind: 'tool', iteration: 0, intent: '', parent: '', name: callId, key: 0 };
}

function identityOf(tool: string, options: ToolCallOptions | undefined): CallIdentity {
  const input = options === undefined ? undefined : checkInput(ToolCallOptions, options, 'options').input;
  return input === undefined ? { tool } : { tool, input: jsonDigest(input, 'options.input') };
}

/** @throws ToolCallConflictError */
function assertSame(callId: string, before: CallIdentity, now: CallIdentity): void {
  const isSameInput = before.input === undefined || now.input === undefined || before.input === now.input;
  if (before.tool !== now.tool || !isSameInput) throw new ToolCallConflictError(callId, before.tool);
}
