import { type BackgroundWork } from '../common/background-work.js';
import { type ConversationCompactor } from '../conversation/conversation-compactor.service.js';
import { type MessageTokens } from '../conversation/message-tokens.js';
import { type ConversationLog } from '../ledger/conversation.store.js';
import { type StateDocument, type StateStore } from '../ledger/state.store.js';
import { type OrchestrationAgents } from '../orchestration/orchestration-agents.js';
import { type StepPredicates } from '../orchestration/step-predicates.js';
import { type SessionStore } from '../session/session-store.service.js';
import { type TurnContexts } from '../turn/turn-contexts.js';
import { type Rewind } from './rewind.js';
import { type TurnCommands } from './turn-commands.js';
import { type TurnContextFactory } from './turn-context.js';
import { type ModuleRules } from './turn-module-state.js';

/** The services that all turns of a process share. */
export interface TurnParts {
  readonly sessions: SessionStore;
  readonly contexts: TurnContexts;
  readonly contextFactory: () => TurnContextFactory;
  readonly agents: OrchestrationAgents;
  readonly predicates: StepPredicates;
  readonly tokens: MessageTokens;
  readonly compactor: ConversationCompactor;
  readonly log: ConversationLog;
  /** True if turns of this process read and write the log (FIX-46). */
  readonly logsConversations: boolean;
  readonly state: StateStore;
  readonly modules: ModuleRules;
  readonly commands: TurnCommands;
  readonly rewind: Rewind;
  /** Work that continues after a turn has settled. */
  readonly background: BackgroundWork;
}

/**
 * The state documents that a turn was claimed with; `null` if its orchestrator does not need the document, or it does
 * not exist.
 */
export interface TurnDocuments {
  readonly plan: StateDocument | null;
  readonly head: StateDocument | null;
}
