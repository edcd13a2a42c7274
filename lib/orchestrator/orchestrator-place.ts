import { type SessionStore } from '../session/session-store.service.js';
import { type TurnService } from '../turn/turn.service.js';
import { type OrchestratorCommands } from './orchestrator-commands.js';
import { type OrchestratorDefinition } from './orchestrator.js';
import { type TimeTravel } from './time-travel.js';

/** What a handle works with. */
export interface OrchestratorPlace {
  readonly definition: OrchestratorDefinition;
  readonly turns: TurnService;
  readonly sessions: SessionStore;
  readonly commands: OrchestratorCommands;
  readonly timeTravel: TimeTravel;
}
