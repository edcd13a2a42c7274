import { type Provider } from '@nestjs/common';
import { APP_FILTER, DiscoveryService, ModuleRef, ModulesContainer } from '@nestjs/core';
import { SchedulerRegistry } from '@nestjs/schedule';
import { CheckpointStore } from './checkpoint/checkpoint.store.js';
import { BackgroundWork } from './common/background-work.js';
import { findProvider, lazily, provide } from './common/nest-providers.js';
import { ConversationCompaction } from './conversation/conversation-compaction.service.js';
import { ConversationCompactor } from './conversation/conversation-compactor.service.js';
import { ConversationHeads } from './conversation/conversation-heads.js';
import { MessageTokens } from './conversation/message-tokens.js';
import { HttpConnections } from './http/http-connections.js';
import { StateEvents } from './http/state/state-events.js';
import { SessionsExceptionFilter } from './transport/sessions-exception.filter.js';
import { SessionGuard } from './transport/session.guard.js';
import { SessionSweeper } from './maintenance/session-sweeper.service.js';
import { OrchestrationAgents } from './orchestration/orchestration-agents.js';
import { OrchestrationEvents } from './orchestration/orchestration-events.js';
import { orchestrationParts } from './orchestration/agent-orchestration.js';
import { OrchestrationService } from './orchestration/orchestration.service.js';
import { OrchestrationStateManager } from './orchestration/orchestration-state-manager.service.js';
import { StepPredicates } from './orchestration/step-predicates.js';
import { StepSequencer } from './orchestration/step-sequencer.service.js';
import { checkedPrincipals } from './transport/principal.js';
import { ToolGuard } from './transport/tool.guard.js';
import { OrchestratorCommands } from './orchestrator/orchestrator-commands.js';
import { OrchestratorEvents } from './orchestrator/orchestrator-events.js';
import { compactionTeller, onlySummarizer } from './orchestrator/compaction-parts.js';
import { registerConversationCommands } from './orchestrator/conversation-commands.js';
import { OrchestratorExplorer } from './orchestrator/orchestrator.explorer.js';
import { OrchestratorRegistry } from './orchestrator/orchestrator.registry.js';
import { OrchestratorRunner } from './orchestrator/orchestrator-runner.js';
import { TimeTravel } from './orchestrator/time-travel.js';
import { TurnCommands } from './orchestrator/turn-commands.js';
import { TurnContextFactory } from './orchestrator/turn-context.js';
import { SessionRecords } from './records/session-records.service.js';
import { silentQueue } from './queue/in-process/silent-queue.js';
import { AffinityResolver, defaultAffinityResolver } from './session/affinity-resolver.js';
import { SessionEvents } from './session/session-events.js';
import { isAtomic } from './session/session.store.js';
import { SessionStore } from './session/session-store.service.js';
import { type SessionsAdapter } from './sessions.adapter.js';
import { SessionsLifecycle } from './sessions.lifecycle.js';
import { type ProcessRole } from './sessions.options.js';
import { resolveOptions, type SessionsSettings } from './sessions.settings.js';
import { builtInModules, builtInState } from './state/built-in-modules.js';
import { type BuiltInState, SessionStateService } from './state/session-state.service.js';
import { StateModules } from './state/state-modules.js';
import {
  BUILT_IN_STATE,
  OBSERVED_ADAPTER,
  PRINCIPAL_RESOLVER,
  SESSIONS_ADAPTER,
  SESSIONS_OPTIONS,
  SESSIONS_ROLE,
  SESSIONS_SETTINGS,
  TURN_QUEUE,
} from './sessions.tokens.js';
import { observedAdapter } from './telemetry/observed-adapter.js';
import { loadTelemetry } from './telemetry/open-telemetry.js';
import { Telemetry } from './telemetry/telemetry.js';
import { LaneBell } from './turn/lane-bell.js';
import { LaneReconciler } from './turn/lane-reconciler.service.js';
import { PassedTurns } from './turn/passed-turns.js';
import { StoredEvents } from './turn/stored-events.js';
import { TurnContexts } from './turn/turn-contexts.js';
import { type TurnQueue } from './turn/turn-queue.js';
import { TurnRecovery } from './turn/turn-recovery.js';
import { TurnRunner } from './turn/turn-runner.js';
import { TurnRuntime } from './turn/turn-runtime.js';
import { TurnService } from './turn/turn.service.js';
import { TurnWorker } from './turn/turn-worker.service.js';

/** Milliseconds that a summary may take where turns have no limit. */
const SUMMARY_TIMEOUT_MS = 900_000;

/** What applications inject; the rest is private. */
export const PUBLIC_TOKENS = [
  SessionStore,
  SessionEvents,
  SessionRecords,
  TurnService,
  OrchestrationStateManager,
  StepSequencer,
  OrchestrationService,
  OrchestrationEvents,
  OrchestratorEvents,
  SessionStateService,
  StateEvents,
  CheckpointStore,
  AffinityResolver,
  SessionGuard,
  ToolGuard,
  SESSIONS_ADAPTER,
  TURN_QUEUE,
  PRINCIPAL_RESOLVER,
];

/** How the parts are put together: options, store, domain services, workers, HTTP. */
export const SESSIONS_PROVIDERS: Provider[] = [
  provide(SESSIONS_SETTINGS, [SESSIONS_OPTIONS], resolveOptions),
  provide(SESSIONS_ADAPTER, [SESSIONS_SETTINGS], async ({ adapter }: SessionsSettings) => {
    await adapter.init?.();
    return adapter;
  }),
  provide(Telemetry, [SESSIONS_SETTINGS], ({ telemetry }: SessionsSettings) =>
    telemetry ? loadTelemetry() : new Telemetry(),
  ),
  provide(OBSERVED_ADAPTER, [SESSIONS_ADAPTER, Telemetry], observedAdapter),

  provide(
    TURN_QUEUE,
    [SESSIONS_SETTINGS, SESSIONS_ROLE],
    ({ queue, queueByDefault }: SessionsSettings, role: ProcessRole) =>
      queueByDefault && role === 'submit' ? silentQueue : queue,
  ),
  provide(
    SessionStore,
    [OBSERVED_ADAPTER, SESSIONS_SETTINGS],
    ({ sessions }: SessionsAdapter, settings: SessionsSettings) => {
      return new SessionStore(sessions, settings.sessions);
    },
  ),
  provide(SessionEvents, [SessionStore], ({ events }: SessionStore) => events),
  provide(AffinityResolver, [SessionStore], defaultAffinityResolver),
  provide(CheckpointStore, [OBSERVED_ADAPTER], ({ checkpoints }: SessionsAdapter) => checkpoints),

  OrchestrationEvents,
  StepPredicates,
  provide(
    OrchestrationAgents,
    [OBSERVED_ADAPTER, SESSIONS_SETTINGS, OrchestrationEvents],
    ({ state }: SessionsAdapter, { orchestration }: SessionsSettings, events: OrchestrationEvents) =>
      new OrchestrationAgents(orchestrationParts(state, orchestration, events)),
  ),
  provide(
    OrchestrationStateManager,
    [OrchestrationAgents],
    (agents: OrchestrationAgents) => new OrchestrationStateManager(agents),
  ),
  provide(StepSequencer, [OrchestrationAgents], (agents: OrchestrationAgents) => new StepSequencer(agents)),
  provide(
    OrchestrationService,
    [OrchestrationAgents, StepPredicates],
    (agents: OrchestrationAgents, predicates: StepPredicates) => new OrchestrationService(agents, predicates),
  ),

  provide(
    SessionStateService,
    [OBSERVED_ADAPTER, SESSIONS_SETTINGS, BUILT_IN_STATE, StateModules],
    (stores: SessionsAdapter, { state }: SessionsSettings, builtIn: BuiltInState, modules: StateModules) =>
      new SessionStateService({ stores, modules, builtIn, redact: state.redact }),
  ),
  provide(
    BUILT_IN_STATE,
    [OBSERVED_ADAPTER, SESSIONS_SETTINGS],
    (stores: SessionsAdapter, { state }: SessionsSettings) => builtInState(stores, state),
  ),
  provide(
    StateModules,
    [OBSERVED_ADAPTER, BUILT_IN_STATE, ConversationCompaction],
    (stores: SessionsAdapter, builtIn: BuiltInState, compaction: ConversationCompaction) =>
      new StateModules(builtInModules(stores, builtIn, compaction)),
  ),

  provide(MessageTokens, [SESSIONS_SETTINGS], ({ tokenCounter }: SessionsSettings) => new MessageTokens(tokenCounter)),
  provide(
    ConversationCompactor,
    [OBSERVED_ADAPTER, SESSIONS_SETTINGS, MessageTokens, OrchestratorRegistry, OrchestratorEvents],
    (
      adapter: SessionsAdapter,
      { turns }: SessionsSettings,
      tokens: MessageTokens,
      registry: OrchestratorRegistry,
      events: OrchestratorEvents,
    ) =>
      new ConversationCompactor({
        emit: compactionTeller(registry, events),
        adapter,
        tokens,
        leaseMs: turns.leaseMs,
        timeoutMs: turns.timeoutMs ?? SUMMARY_TIMEOUT_MS,
      }),
  ),

  provide(
    ConversationCompaction,
    [OBSERVED_ADAPTER, SESSIONS_SETTINGS, MessageTokens, ConversationCompactor, OrchestratorRegistry],
    (
      adapter: SessionsAdapter,
      { state: { summarize } }: SessionsSettings,
      tokens: MessageTokens,
      compactor: ConversationCompactor,
      registry: OrchestratorRegistry,
    ) =>
      new ConversationCompaction({
        adapter,
        tokens,
        compactor,
        summarizer: () => (summarize ? { orchestrator: null, summarize } : onlySummarizer(registry)),
        orchestrators: () => registry.names(),
      }),
  ),

  provide(
    OrchestratorCommands,
    [ConversationCompactor, OrchestratorRegistry, SessionStore],
    (compactor: ConversationCompactor, registry: OrchestratorRegistry, sessions: SessionStore) => {
      const commands = new OrchestratorCommands();
      registerConversationCommands(commands, compactor, registry, sessions);
      return commands;
    },
  ),
  OrchestratorRegistry,
  OrchestratorEvents,
  provide(
    OrchestratorExplorer,
    [
      DiscoveryService,
      ModulesContainer,
      ModuleRef,
      OrchestratorRegistry,
      OrchestrationAgents,
      StepPredicates,
      StateModules,
    ],
    (...args: ConstructorParameters<typeof OrchestratorExplorer>) => new OrchestratorExplorer(...args),
  ),
  provide(
    TurnRunner,
    [
      OrchestratorRegistry,
      SessionStore,
      TurnContexts,
      ModuleRef,
      OrchestrationAgents,
      StepPredicates,
      OrchestratorEvents,
      MessageTokens,
      ConversationCompactor,
      OBSERVED_ADAPTER,
      SESSIONS_SETTINGS,
    ],
    (
      registry: OrchestratorRegistry,
      sessions: SessionStore,
      contexts: TurnContexts,
      moduleRef: ModuleRef,
      agents: OrchestrationAgents,
      predicates: StepPredicates,
      events: OrchestratorEvents,
      tokens: MessageTokens,
      compactor: ConversationCompactor,
      { checkpoints, conversations, state }: SessionsAdapter,
      { state: { modules, maxBytes } }: SessionsSettings,
    ) => {
      const contextFactory = lazily(() => findProvider(moduleRef, TurnContextFactory) ?? new TurnContextFactory());
      const commands = new TurnCommands(checkpoints, conversations, new ConversationHeads(state), agents);
      return new OrchestratorRunner(registry, events, {
        sessions,
        contexts,
        contextFactory,
        agents,
        predicates,
        tokens,
        compactor,
        log: conversations,
        state,
        modules: { enabled: modules, maxBytes },
        commands,
        background: new BackgroundWork(),
      });
    },
  ),

  provide(
    TurnContexts,
    [SESSIONS_ROLE, OBSERVED_ADAPTER],
    (role: ProcessRole, { turns, hints }: SessionsAdapter) => new TurnContexts(role !== 'submit', turns, hints),
  ),
  provide(
    TurnRuntime,
    [OBSERVED_ADAPTER, SESSIONS_SETTINGS, TURN_QUEUE, TurnRunner, TurnContexts, SessionStore, Telemetry],
    (
      adapter: SessionsAdapter,
      settings: SessionsSettings,
      queue: TurnQueue,
      runner: TurnRunner,
      contexts: TurnContexts,
      sessions: SessionStore,
      telemetry: Telemetry,
    ) => ({
      ledger: adapter.turns,
      hints: adapter.hints,
      events: adapter.events,
      stored: new StoredEvents(),
      queue,
      bell: new LaneBell(queue),
      recovery: new TurnRecovery(),
      passed: new PassedTurns(),
      runner,
      contexts,
      settings: settings.turns,
      telemetry,
      sessions,
      foreignSessions: !isAtomic(adapter.sessions),
    }),
  ),
  provide(
    SessionRecords,
    [SessionStore, SESSIONS_ADAPTER],
    (...parts: ConstructorParameters<typeof SessionRecords>) => new SessionRecords(...parts),
  ),
  provide(TurnService, [TurnRuntime], (runtime: TurnRuntime) => new TurnService(runtime)),
  provide(
    TimeTravel,
    [TurnService, SessionStore, CheckpointStore],
    (...parts: ConstructorParameters<typeof TimeTravel>) => new TimeTravel(...parts),
  ),
  provide(TurnWorker, [TurnRuntime], (runtime: TurnRuntime) => new TurnWorker(runtime)),
  provide(LaneReconciler, [TurnRuntime], (runtime: TurnRuntime) => new LaneReconciler(runtime)),
  provide(
    SessionSweeper,
    [SessionStore, OBSERVED_ADAPTER, SESSIONS_SETTINGS, ModuleRef, Telemetry],
    (
      sessions: SessionStore,
      adapter: SessionsAdapter,
      settings: SessionsSettings,
      moduleRef: ModuleRef,
      telemetry: Telemetry,
    ) => new SessionSweeper(sessions, adapter, settings.sweep, findProvider(moduleRef, SchedulerRegistry), telemetry),
  ),

  provide(PRINCIPAL_RESOLVER, [SESSIONS_SETTINGS], ({ principal }: SessionsSettings) => checkedPrincipals(principal)),
  SessionGuard,
  ToolGuard,
  StateEvents,
  HttpConnections,
  { provide: APP_FILTER, useClass: SessionsExceptionFilter },
  SessionsLifecycle,
];
