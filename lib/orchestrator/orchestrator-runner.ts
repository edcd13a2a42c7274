import { Logger } from '@nestjs/common';
import { deepFreeze } from '../common/json.js';
import { type SessionsError } from '../common/sessions.error.js';
import { HEAD } from '../conversation/conversation-head.js';
import { readOrchestrationFailure } from '../orchestration/orchestration.errors.js';
import { type TurnListener } from '../turn/turn-contexts.js';
import { type Parked, type RunnableOrchestrator, type TurnControl, TurnRunner } from '../turn/turn-runner.js';
import { type ClaimedTurn, type ClaimRequest, type TurnSettlement } from '../ledger/turn.store.js';
import { type Turn } from '../ledger/turn.js';
import { OrchestratorResultError, readOrchestratorFailure } from './orchestrator.errors.js';
import { type OrchestratorDefinition } from './orchestrator.js';
import {
  type OrchestratorEvent,
  type OrchestratorEventBody,
  type OrchestratorEvents,
  tellListeners,
} from './orchestrator-events.js';
import { OrchestratorTurn, type TurnDocuments, type TurnParts } from './orchestrator-turn.js';
import { type OrchestratorRegistry } from './orchestrator.registry.js';
import { readCommandFailure } from './time-travel.errors.js';

/** Runs turns at the orchestrators of this process. */
export class OrchestratorRunner extends TurnRunner {
  private readonly logger = new Logger(OrchestratorRunner.name);
  private wanted: Pick<ClaimRequest, 'windows' | 'documents'> = { windows: {} };

  constructor(
    private readonly registry: OrchestratorRegistry,
    private readonly events: OrchestratorEvents,
    private readonly parts: TurnParts,
  ) {
    super();
  }

  find(name: string): RunnableOrchestrator | undefined {
    return this.registry.get(name);
  }

  names(): string[] {
    return this.registry.names();
  }

  needs(): Pick<ClaimRequest, 'windows' | 'documents'> {
    const windows = this.registry.windows();
    // Every orchestrator that is registered makes new ones.
    if (this.wanted.windows !== windows) this.wanted = { windows, ...this.documents() };
    return this.wanted;
  }

  run(claimed: ClaimedTurn, control: TurnControl): Promise<TurnSettlement | Parked> {
    const definition = this.definitionOf(claimed.turn);
    const documents = this.documentsOf(definition, claimed);
    const tell = this.teller(definition, claimed.turn);
    return new OrchestratorTurn(this.parts, definition, claimed, documents, control, tell).run();
  }

  idle(): Promise<void> {
    return this.parts.background.idle();
  }

  readFailure(turn: Turn): SessionsError | undefined {
    return readOrchestratorFailure(turn) ?? readOrchestrationFailure(turn) ?? readCommandFailure(turn);
  }

  private documents(): Pick<ClaimRequest, 'documents'> {
    const readers = this.registry.readers();
    if (readers.length === 0) return {};
    const documents = readers.map((definition) => {
      const { name, plan } = definition;
      const head = this.registry.readsConversation(definition) ? [HEAD] : [];
      // In the order that documentsOf knows.
      return [name, [...(plan ? [this.parts.agents.get(name).name] : []), ...head]] as const;
    });
    return { documents: Object.fromEntries(documents) };
  }

  /** The documents that the turn was claimed with, see `needs`. */
  private documentsOf(definition: OrchestratorDefinition, { documents }: ClaimedTurn): TurnDocuments {
    const { plan } = definition;
    const [first = null, second = null] = documents;
    return {
      plan: plan ? first : null,
      head: this.registry.readsConversation(definition) ? (plan ? second : first) : null,
    };
  }

  private definitionOf(turn: Turn): OrchestratorDefinition {
    const definition = this.registry.get(turn.orchestrator);
    if (!definition) throw new OrchestratorResultError(turn.orchestrator, 'is not registered in this process.');
    return definition;
  }

  /** Tells everybody of this process who listens: those of the definition, of this turn, and of all orchestrators. */
  private teller(
    { name, on }: OrchestratorDefinition,
    { id, sessionId }: Turn,
  ): (event: OrchestratorEventBody) => void {
    const about = { orchestrator: name, sessionId, turnId: id };
    // Kept for the whole attempt: the news of the turn's end may have come by the store before its last events are told.
    const own = this.parts.contexts.listener(id);
    let over = false;
    return (body) => {
      // What a handler left running tells nobody any more.
      if (over) return;
      over = body.type === 'turn-settled';
      if (!on[body.type] && !own && !this.events.isHeard) return;
      const event: OrchestratorEvent = deepFreeze({ ...about, ...body });
      tellListeners(this.logger, event, [on[body.type], own] as (TurnListener | undefined)[]);
      this.events.emit(event);
    };
  }
}
