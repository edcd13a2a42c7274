import { assertName } from '../common/ids.js';
import { InvalidInputError } from '../common/sessions.error.js';
import { type AIOrchestrationState, toAIState } from '../orchestration/ai-orchestration-state.js';
import { type OrchestrationStep } from '../orchestration/orchestration-config.js';
import { NO_PROGRESS, type OrchestrationProgress } from '../orchestration/orchestration-state.js';
import { type TurnOrchestration } from '../orchestration/turn-orchestration.js';
import { toolSpan } from '../telemetry/call-spans.js';
import { type StepKey } from '../turn/turn-step.js';
import { type StepInfo, type TurnTools } from './turn-context.js';
import { type TurnSteps } from './turn-steps.js';

/** What is stored of a call. */
interface StoredCall {
  readonly tool: string;
  readonly value?: unknown;
}

/** The calls of tools in one attempt of a turn. */
export class TurnToolCalls implements TurnTools {
  private readonly calls = new Map<string, { readonly tool: string; readonly result: Promise<unknown> }>();
  /** Resolves when all calls so far are over. */
  private last: Promise<unknown> | null = null;

  constructor(
    private readonly steps: TurnSteps,
    private readonly orchestration: TurnOrchestration | null,
  ) {}

  get activeStep(): OrchestrationStep | undefined {
    return this.orchestration?.activeStep;
  }

  get state(): OrchestrationProgress {
    return this.orchestration?.state ?? NO_PROGRESS;
  }

  allowed(tools: readonly string[]): string[] {
    return this.orchestration ? this.orchestration.allowed(tools) : [...tools];
  }

  toAIOrchestrationState(): AIOrchestrationState {
    return this.orchestration ? this.orchestration.toAIState() : toAIState(NO_PROGRESS, undefined);
  }

  use<T>(tool: string, callId: string, work: (info: StepInfo) => Promise<T> | T): Promise<T> {
    const call = this.call(tool, callId, work);
    // Whoever awaits it is told. A handler that has left before must not end the process with it.
    call.catch(() => undefined);
    return call;
  }

  private async call<T>(tool: string, callId: string, work: (info: StepInfo) => Promise<T> | T): Promise<T> {
    this.steps.assertOutside('turn.tools.use', 'call it beside the step, or after it');
    assertName(tool, 'tool');
    assertName(callId, 'callId');
    if (callId.length > 250) throw new InvalidInputError('callId', 'must have at most 250 characters.');
    const known = this.calls.get(callId);
    if (known) {
      assertSameTool(callId, known.tool, tool);
      return known.result as Promise<T>;
    }
    const result = this.inOrder(() => this.run(tool, callId, work));
    this.calls.set(callId, { tool, result });
    // What did not happen may be called again.
    result.catch(() => this.calls.delete(callId));
    return result;
  }

  /** While a sequence is under way, what comes next depends on what comes before. */
  private inOrder<T>(work: () => Promise<T>): Promise<T> {
    const before = this.last;
    const run = before && this.orchestration?.isSequenced ? before.then(work) : work();
    this.last = Promise.allSettled([before, run]);
    return run;
  }

  private async run<T>(tool: string, callId: string, work: (info: StepInfo) => Promise<T> | T): Promise<T> {
    const { steps, orchestration } = this;
    const key = keyOf(callId);
    orchestration?.assertAllowed(tool, steps.isStored(key));
    let stored: StoredCall;
    try {
      stored = await steps.runAt<StoredCall>(key, toolSpan(tool, callId), async (info) => ({
        tool,
        value: await work(info),
      }));
    } catch (error) {
      await orchestration?.record(tool, callId, 'failed');
      throw error;
    }
    assertSameTool(callId, stored.tool, tool);
    await orchestration?.record(tool, callId, 'succeeded');
    return (stored.value ?? null) as T;
  }
}

/** A call is the turn's, whatever iteration or intent makes it. */
function keyOf(callId: string): StepKey {
  return { iteration: -1, intent: '', name: `tool ${callId}`, occurrence: 0 };
}

function assertSameTool(callId: string, before: string, now: string): void {
  if (before === now) return;
  throw new InvalidInputError('callId', `is ${JSON.stringify(callId)}, which was a call of ${before}, not of ${now}.`);
}
