import { Logger } from '@nestjs/common';
import { deepFreeze } from '../common/json.js';
import { type SessionsError } from '../common/sessions.error.js';
import { HEAD } from '../conversation/conversation-head.js';
import { readOrchestrationFailure } from '../orchestration/orchestration.errors.js';
import { type TurnListener } from '../turn/turn-contexts.js';
import { type AwaitingSignal, type RunnableOrchestrator, type AttemptHandle, TurnRunner } from '../turn/turn-runner.js';
import { type ClaimedTurn, type ClaimRequest, type TurnSettlement } from '../ledger/turn.store.js';
import { type Turn } from '../ledger/turn.js';
import { readOrchestratorFailure, wrongResult } from './orchestrator.errors.js';
import { type OrchestratorDefinition } from './orchestrator.js';
import {
  type OrchestratorEvent,
  type OrchestratorEventBody,
  type OrchestratorEvents,
  notifyListeners,
} from './orchestrator-events.js';
import { isOutgrown } from './orchestrator-signature.js';
import { OrchestratorTurn } from './orchestrator-turn.js';
import { knowsDecisions } from './turn-loop.js';
import { type TurnDocuments, type TurnParts } from './turn-parts.js';
import { type OrchestratorRegistry } from './orchestrator.registry.js';
import { readCommandFailure } from './time-travel.errors.js';

/** Runs turns with the orchestrators of this process. */
export class OrchestratorRunner extends TurnRunner {
  private readonly logger = new Logger(OrchestratorRunner.name);
  private currentNeeds: Pick<ClaimRequest, 'windows' | 'documents'> = { windows: {} };

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

  isOutgrown({ turn, checkpoint, steps }: ClaimedTurn): boolean {
    const definition = this.registry.get(turn.orchestrator);
    if (!definition) return false;
    return !knowsDecisions(definition, steps) || (checkpoint !== null && isOutgrown(definition, checkpoint));
  }

  names(): string[] {
    return this.registry.names();
  }

  needs(): Pick<ClaimRequest, 'windows' | 'documents'> {
    const windows = this.registry.windows();
    // Each registration creates a new `windows` object.
    if (this.currentNeeds.windows !== windows) this.currentNeeds = { windows, ...this.documents() };
    return this.currentNeeds;
  }

  run(claimed: ClaimedTurn, handle: AttemptHandle): Promise<TurnSettlement | AwaitingSignal> {
    const definition = this.definitionOf(claimed.turn);
    const documents = this.documentsOf(definition, claimed);
    const tell = this.notifierOf(definition, claimed.turn);
    return new OrchestratorTurn(this.parts, definition, { claimed, documents }, handle, tell).run();
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
      // documentsOf relies on this order.
      return [name, [...(plan ? [this.parts.agents.get(name).name] : []), ...head]] as const;
    });
    return { documents: Object.fromEntries(documents) };
  }

  /** Returns the documents that the turn was claimed with, see `needs`. */
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
    if (!definition) {
      throw wrongResult(
        turn.orchestrator,
        'it is not registered in this process. Add it to SessionsModule.forFeature([...]).',
      );
    }
    return definition;
  }

  /**
   * Returns a function that notifies the listeners of this process: those of the definition, of this turn, and of all
   * orchestrators.
   */
  private notifierOf(
    { name, on }: OrchestratorDefinition,
    { id, sessionId }: Turn,
  ): (event: OrchestratorEventBody) => void {
    const about = { orchestrator: name, sessionId, turnId: id };
    // Keep the listener for the whole attempt: the store may report the end of the turn before its last events are
    // emitted.
    const own = this.parts.contexts.listener(id);
    let over = false;
    return (body) => {
      // Ignore events of code that a handler left running.
      if (over) return;
      over = body.type === 'turn-settled';
      if (!on[body.type] && !own && !this.events.isAnswered) return;
      const event: OrchestratorEvent = deepFreeze({ ...about, ...body });
      notifyListeners(this.logger, event, [on[body.type], own] as (TurnListener | undefined)[]);
      this.events.emit(event);
    };
  }
}
