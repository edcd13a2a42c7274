import { type SessionStore } from '../session/session-store.service.js';
import { type TurnService } from '../turn/turn.service.js';
import { type ConversationCommands } from './conversation-commands.js';
import { type OrchestratorDefinition } from './orchestrator.js';
import { type TimeTravel } from './time-travel.js';

/** The definition and services that a handle uses. */
export interface OrchestratorPlace {
  readonly definition: OrchestratorDefinition;
  readonly turns: TurnService;
  readonly sessions: SessionStore;
  readonly commands: ConversationCommands;
  readonly timeTravel: TimeTravel;
}
