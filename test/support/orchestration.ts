import { Logger } from '@nestjs/common';
import {
  createOrchestrationService,
  createOrchestrationStateManager,
  createStepSequencer,
  defineStepPlan,
  type OrchestrationEvent,
  type OrchestrationService,
  type OrchestrationStateManager,
  type OrchestrationStateManagerOptions,
  type OrchestrationStep,
  type SessionsAdapter,
  type StepPlan,
  type StepPlanConfig,
  type StepPredicateHandler,
  type StepSequencer,
} from 'nestjs-agent-sessions';
import { LIVE_STORES } from './running-application.js';

/** The same tests on every store, which is open and which they share: each takes sessions of its own. */
export function describeStores(title: string, tests: (store: () => SessionsAdapter, name: string) => void): void {
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
  /** What was told so far. */
  readonly events: OrchestrationEvent[];
}

/** As one process has it, without Nest. */
export function orchestrate(
  { state }: Pick<SessionsAdapter, 'state'>,
  options: OrchestrationStateManagerOptions = {},
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

/** A plan of the agent `desk`. */
export function planOf(steps: readonly OrchestrationStep[], more: Partial<StepPlanConfig> = {}): StepPlan {
  return defineStepPlan({ agent: 'desk', steps, ...more });
}

/** Every warning from now on; nothing else is logged. */
export function noteWarnings(): string[] {
  const warnings: string[] = [];
  Logger.overrideLogger({ log: () => {}, error: () => {}, warn: (text: unknown) => void warnings.push(String(text)) });
  return warnings;
}

export const anyNumber = (): number => expect.any(Number) as number;
export const anyText = (): string => expect.any(String) as string;
export const textLike = (pattern: RegExp): string => expect.stringMatching(pattern) as string;
