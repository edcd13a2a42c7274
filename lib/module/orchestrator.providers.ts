import { type Provider } from '@nestjs/common';
import { DiscoveryService, ModuleRef, ModulesContainer } from '@nestjs/core';
import { BackgroundWork } from '../common/background-work.js';
import { findProvider, lazily, provide, provideClass } from '../common/nest-providers.js';
import { OBSERVED_ADAPTER, SESSIONS_SETTINGS } from '../common/sessions.tokens.js';
import { ConversationCompactor } from '../conversation/conversation-compactor.service.js';
import { ConversationHeads } from '../conversation/conversation-heads.js';
import { MessageTokens } from '../conversation/message-tokens.js';
import { CheckpointStore } from '../ledger/checkpoint.store.js';
import { type SessionsAdapter } from '../ledger/sessions.adapter.js';
import { orchestrationParts } from '../orchestration/agent-orchestration.js';
import { OrchestrationAgents } from '../orchestration/orchestration-agents.js';
import { OrchestrationEvents } from '../orchestration/orchestration-events.js';
import { OrchestrationStateManager } from '../orchestration/orchestration-state-manager.service.js';
import { OrchestrationService } from '../orchestration/orchestration.service.js';
import { StepPredicates } from '../orchestration/step-predicates.js';
import { StepSequencer } from '../orchestration/step-sequencer.service.js';
import { ConversationCommands } from '../orchestrator/conversation-commands.js';
import { OrchestratorEvents } from '../orchestrator/orchestrator-events.js';
import { OrchestratorRunner } from '../orchestrator/orchestrator-runner.js';
import { OrchestratorExplorer } from '../orchestrator/orchestrator.explorer.js';
import { OrchestratorRegistry } from '../orchestrator/orchestrator.registry.js';
import { TimeTravel } from '../orchestrator/time-travel.js';
import { Rewind } from '../orchestrator/rewind.js';
import { Transcript } from '../orchestrator/transcript.js';
import { TurnCommands } from '../orchestrator/turn-commands.js';
import { TurnContextFactory } from '../orchestrator/turn-context.js';
import { SessionStore } from '../session/session-store.service.js';
import { ownedState } from '../state/owned-state.js';
import { StateModules } from '../state/state-modules.js';
import { knownSession } from '../turn/running-turn.js';
import { TurnContexts } from '../turn/turn-contexts.js';
import { TurnRunner } from '../turn/turn-runner.js';
import { TurnService } from '../turn/turn.service.js';
import { type SessionsSettings } from './sessions.settings.js';

/** The services that discover orchestrators, run their turns, and implement their handles. */
export const ORCHESTRATOR_PROVIDERS: Provider[] = [
  provide(
    OrchestratorRegistry,
    [SESSIONS_SETTINGS],
    ({ state }: SessionsSettings) => new OrchestratorRegistry(state.modules),
  ),
  OrchestratorEvents,
  provideClass(OrchestratorExplorer, [
    DiscoveryService,
    ModulesContainer,
    ModuleRef,
    OrchestratorRegistry,
    OrchestrationAgents,
    StepPredicates,
    StateModules,
    MessageTokens,
  ]),
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
    runnerOf,
  ),
  provideClass(ConversationCommands, [ConversationCompactor, OrchestratorRegistry, SessionStore]),
  provideClass(TimeTravel, [TurnService, SessionStore, CheckpointStore, OrchestratorRegistry]),
  provide(
    Transcript,
    [OBSERVED_ADAPTER],
    (stores: SessionsAdapter) => new Transcript(stores, new ConversationHeads(stores.state)),
  ),
];

function runnerOf(
  registry: OrchestratorRegistry,
  sessions: SessionStore,
  contexts: TurnContexts,
  moduleRef: ModuleRef,
  agents: OrchestrationAgents,
  predicates: StepPredicates,
  events: OrchestratorEvents,
  tokens: MessageTokens,
  compactor: ConversationCompactor,
  { checkpoints, conversations, state, turns }: SessionsAdapter,
  { state: { modules, logsConversations, maxBytes } }: SessionsSettings,
): OrchestratorRunner {
  const rewind = new Rewind(checkpoints, conversations, turns, agents);
  return new OrchestratorRunner(registry, events, {
    sessions,
    contexts,
    contextFactory: lazily(() => findProvider(moduleRef, TurnContextFactory) ?? new TurnContextFactory()),
    agents,
    predicates,
    tokens,
    compactor,
    log: conversations,
    logsConversations,
    state,
    modules: { enabled: modules, maxBytes },
    commands: new TurnCommands(checkpoints, conversations, new ConversationHeads(state), agents, registry, rewind),
    rewind,
    background: new BackgroundWork(),
  });
}

/** Steps and tools. Injected services apply to the only agent, or to the one that `of()` selects. */
export const ORCHESTRATION_PROVIDERS: Provider[] = [
  OrchestrationEvents,
  StepPredicates,
  provide(
    OrchestrationAgents,
    [OBSERVED_ADAPTER, SESSIONS_SETTINGS, OrchestrationEvents, SessionStore],
    (
      stores: SessionsAdapter,
      { orchestration }: SessionsSettings,
      events: OrchestrationEvents,
      sessions: SessionStore,
    ) => {
      const states = ownedState(stores, knownSession(stores.turns, sessions));
      return new OrchestrationAgents(orchestrationParts(states, orchestration, events, stores.state));
    },
  ),
  provideClass(OrchestrationStateManager, [OrchestrationAgents]),
  provideClass(StepSequencer, [OrchestrationAgents]),
  provideClass(OrchestrationService, [OrchestrationAgents, StepPredicates]),
];
