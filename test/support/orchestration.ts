import { Logger } from '@nestjs/common';
import {
  createOrchestrationService,
  createOrchestrationStateManager,
  createStepSequencer,
  defineStepPlan,
  type OrchestrationEvent,
  type OrchestrationService,
  type OrchestrationStateManager,
  type OrchestrationStep,
  type SessionsAdapter,
  type StepPlan,
  type StepPlanConfig,
  type StepPredicateHandler,
  type StepSequencer,
} from 'nestjs-agent-sessions';
import { LIVE_STORES } from './running-application.js';

type StoreTests = (store: () => SessionsAdapter, name: string) => void;

/** Runs the tests on each of {@link LIVE_STORES}. They share the open store, so each creates its own sessions. */
export function describeStores(title: string, tests: StoreTests): void {
  describe.each(LIVE_STORES)(`${title}: $name`, ({ name, open }) => {
    let store: SessionsAdapter;

    beforeAll(async () => {
      Logger.overrideLogger(false);
      store = open();
      await store.init?.();
    });
    afterAll(() => store.close?.());

    tests(() => store, name);
  });
}

export interface Orchestration {
  readonly states: OrchestrationStateManager;
  readonly sequencer: StepSequencer;
  readonly service: OrchestrationService;
  /** The recorded entries so far. */
  readonly events: OrchestrationEvent[];
}

/** Creates the services of one process, without Nest. */
export function orchestrate(
  { state }: Pick<SessionsAdapter, 'state'>,
  options: Parameters<typeof createOrchestrationStateManager>[0] = {},
  predicates: Readonly<Record<string, StepPredicateHandler['holds']>> = {},
): Orchestration {
  const states = createOrchestrationStateManager({ storageProvider: state, cleanup: { enabled: false }, ...options });
  const events: OrchestrationEvent[] = [];
  states.events.stream.subscribe((event) => events.push(event));
  return {
    states,
    sequencer: createStepSequencer(states),
    service: createOrchestrationService(states, predicates),
    events,
  };
}

/** Returns a plan of the agent `desk`. */
export function planOf(steps: readonly OrchestrationStep[], more: Partial<StepPlanConfig> = {}): StepPlan {
  return defineStepPlan({ agent: 'desk', steps, ...more });
}

/** Records every warning from now on and suppresses all logs. */
export function noteWarnings(): string[] {
  const warnings: string[] = [];
  Logger.overrideLogger({ log: () => {}, error: () => {}, warn: (text: unknown) => void warnings.push(String(text)) });
  return warnings;
}

export const anyNumber = (): number => expect.any(Number) as number;
export const anyText = (): string => expect.any(String) as string;
export const textLike = (pattern: RegExp): string => expect.stringMatching(pattern) as string;
