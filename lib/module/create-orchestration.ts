import { Logger } from '@nestjs/common';
import {
  Must,
  MustBeBoolean,
  MustBeInteger,
  MustBeName,
  MustHave,
  Optional,
  validateInput,
} from '../common/check-input.js';
import { traceOf } from '../common/error-trace.js';
import { SECONDS_RULE, toSeconds } from '../common/seconds.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { orchestrationParts } from '../orchestration/agent-orchestration.js';
import { isStepPlan } from '../orchestration/define-step-plan.js';
import { OrchestrationAgents } from '../orchestration/orchestration-agents.js';
import { OrchestrationEvents } from '../orchestration/orchestration-events.js';
import { OrchestrationStateOptions } from '../orchestration/orchestration.options.js';
import { orchestrationSettings } from '../orchestration/orchestration.settings.js';
import { OrchestrationService } from '../orchestration/orchestration.service.js';
import {
  type OrchestrationScope,
  OrchestrationStateManager,
  scopeOf,
} from '../orchestration/orchestration-state-manager.service.js';
import { type StepPlan } from '../orchestration/step-plan.js';
import { type StepPredicateHandler, StepPredicates } from '../orchestration/step-predicates.js';
import { StepSequencer } from '../orchestration/step-sequencer.service.js';
import {
  isDocumentStore,
  type KeyValueClient,
  missingOfProvider,
  type StorageProvider,
  StorageProviderState,
  unwrappedClient,
} from '../orchestration/storage-provider.js';
import { type DocumentStore } from '../ledger/state.store.js';
import { memoryAdapter } from '../store/memory/memory-adapter.js';
import { moduleMessages } from './module.messages.js';

/** Options of the removal of expired states. */
export class CleanupOptions {
  /** True if a timer removes expired states. Default true. */
  @Optional()
  @MustBeBoolean()
  enabled?: boolean;

  /** Milliseconds between two runs. Default 300,000 (five minutes). */
  @Optional()
  @MustBeInteger(100, 2_147_483_647)
  intervalMs?: number;
}

/** Options that other packages have in `cleanup`, and the option here that does the same. */
const EQUIVALENT_OPTIONS: Readonly<Record<string, string>> = {
  ttlMs: 'ttlSeconds, in seconds',
  maxSessions: 'maxSessions',
};

/** The options of `createOrchestrationStateManager`. All have defaults. */
export class OrchestrationStateManagerOptions extends OrchestrationStateOptions {
  /** `adapter.state` of an adapter, or any object with get, set, and delete or del. Default: this process's memory. */
  @Optional()
  @MustHave(missingOfProvider, 'must have the methods get, set, and delete or del.')
  storageProvider?: DocumentStore | StorageProvider | KeyValueClient;

  /** The namespace; part of stored keys. Default `orchestration-state`. */
  @Optional()
  @MustBeName()
  storageNamespace?: string;

  /** Periodic removal of expired states. The timer does not keep the process alive. Default: every five minutes. */
  @Optional()
  @Must((value) => typeof value === 'object' && value !== null, 'must be an object.')
  cleanup?: CleanupOptions;

  /** Plans of agents, from `defineStepPlan`. Default: none. */
  @Optional()
  @Must(
    (value) => Array.isArray(value) && value.every(isStepPlan),
    'must be a list of plans created with defineStepPlan().',
  )
  plans?: readonly StepPlan[];
}

/**
 * Creates a state manager without Nest (ORC-15). Without options it stores states in this process's memory. It removes
 * expired states until it is closed.
 * @throws SessionsConfigurationError with the invalid option
 */
export function createOrchestrationStateManager(
  options: OrchestrationStateManagerOptions = {},
): OrchestrationStateManager & {
  /** Emits the events of this manager and of the services created from it. */
  readonly events: OrchestrationEvents;
  /** Stops the removal of expired states. A repeated call is ignored. */
  readonly close: () => void;
} {
  const {
    storageProvider = memoryAdapter().state,
    storageNamespace,
    cleanup = {},
    plans = [],
    ...states
  } = check(OrchestrationStateManagerOptions, options, 'options');
  const misplaced = Object.keys(cleanup).find((key) => Object.hasOwn(EQUIVALENT_OPTIONS, key));
  if (misplaced !== undefined) {
    throw new SessionsConfigurationError(moduleMessages.misplacedOption(misplaced, EQUIVALENT_OPTIONS[misplaced]));
  }
  const { enabled = true, intervalMs = 300_000 } = check(CleanupOptions, cleanup, 'options.cleanup');
  const unwrapped = unwrappedClient(storageProvider);
  if (unwrapped) {
    throw new SessionsConfigurationError(moduleMessages.unwrappedClient(unwrapped.client, unwrapped.wrapper));
  }
  const store = isDocumentStore(storageProvider) ? storageProvider : new StorageProviderState(storageProvider);
  const events = new OrchestrationEvents();
  const settings = orchestrationSettings(storageNamespace, states, secondsOfEnvironment);
  const agents = new OrchestrationAgents(orchestrationParts(store, settings, events));
  plans.forEach((plan) => agents.register(plan));
  agents.complete();
  const manager = new OrchestrationStateManager(agents);
  const logger = new Logger('AgentSessions');
  const timer = enabled
    ? setInterval(() => {
        manager.cleanupExpired().catch((error: unknown) => {
          logger.error('The cleanup of orchestration states failed. The next run retries.', traceOf(error));
        });
      }, intervalMs).unref()
    : undefined;
  return Object.assign(manager, { events, close: () => clearInterval(timer) });
}

/**
 * Creates a step sequencer without Nest (ORC-15).
 * @param stateManager default: a manager without options
 */
export function createStepSequencer(
  stateManager: OrchestrationStateManager = createOrchestrationStateManager(),
): StepSequencer {
  const { agents, agent } = scopeOfManager(stateManager, 'createStepSequencer');
  return new StepSequencer(agents, agent);
}

/**
 * Creates an orchestration service without Nest.
 * @param predicates the functions for `{ type: 'predicate', value: name }`, by name
 * @throws SessionsConfigurationError if a plan of the manager uses a missing predicate
 */
export function createOrchestrationService(
  stateManager: OrchestrationStateManager,
  predicates: Readonly<Record<string, StepPredicateHandler['holds']>> = {},
): OrchestrationService {
  const { agents, agent } = scopeOfManager(stateManager, 'createOrchestrationService');
  const known = new StepPredicates();
  for (const [name, holds] of Object.entries(predicates)) known.register(name, { holds });
  for (const plan of agents.all()) known.assertKnown(plan);
  return new OrchestrationService(agents, known, agent);
}

function secondsOfEnvironment(otherwise: number): number {
  const seconds = toSeconds(process.env.SESSION_TTL_SECONDS ?? otherwise);
  if (seconds !== null) return seconds;
  throw new SessionsConfigurationError(`The environment variable SESSION_TTL_SECONDS ${SECONDS_RULE}`);
}

function scopeOfManager(manager: OrchestrationStateManager, factory: string): OrchestrationScope {
  const scope = scopeOf(manager);
  if (scope) return scope;
  throw new SessionsConfigurationError(`${factory}: the state manager must be an OrchestrationStateManager.`);
}

function check<T extends object>(type: new () => T, input: unknown, path: string): T {
  const checked = validateInput(type, input, path);
  if ('value' in checked) return checked.value;
  const { path: option, rule } = checked.problem;
  throw new SessionsConfigurationError(`createOrchestrationStateManager: ${option} ${rule}`);
}
