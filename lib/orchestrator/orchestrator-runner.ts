import { Logger } from '@nestjs/common';
import { type Checkpoint, type NewCheckpoint } from '../checkpoint/checkpoint.js';
import { deepFreeze, type JsonObject, type JsonValue, stringifyWithin, toJson } from '../common/json.js';
import { hashed } from '../common/log-id.js';
import { type ConversationLog, type NewMessage } from '../conversation/conversation.store.js';
import { type ConversationCompactor } from '../conversation/conversation-compactor.service.js';
import { HEAD } from '../conversation/conversation-head.js';
import { type MessageTokens } from '../conversation/message-tokens.js';
import { type SessionsError } from '../common/sessions.error.js';
import { SessionNotFoundError } from '../session/session.errors.js';
import { type OrchestrationAgents } from '../orchestration/orchestration-agents.js';
import { type StepPredicates } from '../orchestration/step-predicates.js';
import { TurnOrchestration } from '../orchestration/turn-orchestration.js';
import { type Session } from '../session/session.js';
import { type SessionStore } from '../session/session-store.service.js';
import { type StateDocument } from '../state/state.store.js';
import { type TurnContexts, type TurnListener } from '../turn/turn-contexts.js';
import { type EmittedEvent, toNewTurnEvent } from '../turn/turn-event.js';
import {
  type AttemptAccount,
  Parked,
  type RunnableOrchestrator,
  type TurnControl,
  TurnRunner,
} from '../turn/turn-runner.js';
import { type ClaimedTurn, type ClaimRequest, type TurnSettlement } from '../turn/turn.store.js';
import { type SettledTurnStatus, type Turn } from '../turn/turn.js';
import { messageId, userMessage } from '../turn/user-message.js';
import { patched, toPatch } from './intent-outcome.js';
import { loadState } from './load-state.js';
import { memoryKey, type MemorableTurn } from './memory-port.js';
import { OrchestratorResultError, readOrchestratorFailure } from './orchestrator.errors.js';
import { type OrchestratorDefinition } from './orchestrator.js';
import {
  type OrchestratorEvent,
  type OrchestratorEventBody,
  type OrchestratorEvents,
  tellListeners,
} from './orchestrator-events.js';
import { type OrchestratorRegistry } from './orchestrator.registry.js';
import { assertState } from './state-schema.js';
import { readCommandFailure } from './time-travel.errors.js';
import { elapsed, TurnCalls } from './turn-calls.js';
import { type TurnCommands } from './turn-commands.js';
import { type TurnContextFactory } from './turn-context.js';
import { TurnConversation } from './turn-conversation.js';
import { TurnLoop } from './turn-loop.js';
import { begin, type TurnProgress } from './turn-progress.js';
import { asJson, type CompactionReport, type EndedBy, type TurnReport } from './turn-report.js';
import { TurnSteps } from './turn-steps.js';
import { TurnToolCalls } from './turn-tool-calls.js';
import { UsageTally } from './usage-tally.js';

/** Runs turns through their orchestrator: load, drift, window, the loop, and the settlement that follows. */
export class OrchestratorRunner extends TurnRunner {
  private readonly logger = new Logger(OrchestratorRunner.name);

  constructor(
    private readonly registry: OrchestratorRegistry,
    private readonly sessions: SessionStore,
    private readonly contexts: TurnContexts,
    private readonly contextFactory: () => TurnContextFactory,
    private readonly agents: OrchestrationAgents,
    private readonly predicates: StepPredicates,
    private readonly events: OrchestratorEvents,
    private readonly tokens: MessageTokens,
    private readonly compactor: ConversationCompactor,
    private readonly log: ConversationLog,
    private readonly commands: TurnCommands,
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
    const readers = this.registry.readers();
    if (readers.length === 0) return { windows };
    const documents = readers.map(({ name, plan, compaction }) => {
      // In the order that documentsOf knows.
      return [name, [...(plan ? [this.agents.get(name).name] : []), ...(compaction ? [HEAD] : [])]] as const;
    });
    return { windows, documents: Object.fromEntries(documents) };
  }

  async run(claimed: ClaimedTurn, control: TurnControl): Promise<TurnSettlement | Parked> {
    const startedAt = performance.now();
    const { turn, checkpoint } = claimed;
    const definition = this.definitionOf(turn);
    const tell = this.teller(definition, turn);
    const tally = new UsageTally();
    let loop: TurnLoop | null = null;
    let migrated: readonly string[] = [];
    const { headDocument } = documentsOf(definition, claimed);
    const conversation = new TurnConversation(definition, claimed, headDocument, this.tokens, tell);
    const { compaction } = conversation;
    if (compaction?.status === 'applied' && compaction.usage) tally.add('summarizer', compaction.usage);
    const report = (status: SettledTurnStatus, endedBy?: EndedBy): JsonObject =>
      asJson(reportOf(turn, status, { startedAt, endedBy, loop, tally, migrated, compaction }));
    control.onUnfinished((status) => accountOf(turn, report(status), loop?.progress));
    control.onSettled(({ status, turnIndex, error }) => {
      if (turnIndex !== undefined) tell({ type: 'checkpoint-persisted', turnIndex });
      const index = turnIndex === undefined ? {} : { turnIndex };
      const code = error?.code === undefined ? {} : { code: error.code };
      tell({ type: 'turn-settled', status: status as SettledTurnStatus, ...index, ...code });
    });

    tell({ type: 'turn-starting', attempt: turn.failures + 1 });
    const session = claimed.session ?? (await this.loadSession(turn.sessionId));
    const turnIndex = checkpoint ? checkpoint.turnIndex + 1 : 0;
    tell({ type: 'session-loaded', session, turnIndex });
    const load = async (from: Checkpoint | null): Promise<JsonObject> => {
      const loaded = await loadState(definition, { turn, checkpoint: from });
      migrated = loaded.migrated;
      tell({ type: 'drift-checked', drifted: loaded.drifted, migrated });
      return loaded.state;
    };
    const { command } = turn.request;
    if (command) {
      const settlement = await this.commands.run(command, definition, claimed, load);
      return { ...settlement, report: report(settlement.status) };
    }
    const state = patched(await load(checkpoint), toPatch(turn.request.statePatch ?? {}));
    await conversation.load(this.log);

    const context = await this.buildContext(turn, session);
    const orchestration = await this.orchestrationOf(definition, claimed);
    const memo = new TurnSteps(turn.id, claimed.steps, control);
    const attempt = {
      id: turn.id,
      sessionId: turn.sessionId,
      session,
      input: turn.request.input,
      turnIndex,
      attempt: turn.failures + 1,
      attributes: turn.attributes,
      context,
      memories: await recall(definition, turn, session),
      signal: control.signal,
      tools: new TurnToolCalls(memo, orchestration),
      emit: (given: EmittedEvent) => {
        const event = toNewTurnEvent(given);
        tell({ type: 'delta', event });
        return control.emit(event);
      },
    };
    const budget = {
      add: (tokens: Parameters<TurnOrchestration['addUsage']>[0]) => orchestration?.addUsage(tokens),
      assertWithin: () => orchestration?.assertBudget(),
    };
    const calls = new TurnCalls(attempt, conversation.window, memo, tally, budget);

    loop = new TurnLoop(definition, calls, memo, tally, orchestration, tell, state);
    const endedBy = await loop.run();
    if (endedBy instanceof Parked) return endedBy;
    orchestration?.assertSound();
    const { progress, lastRoute } = loop;
    if (definition.stateSchema) await assertState(definition.name, definition.stateSchema, progress.state);
    stringifyWithin(progress.state, definition.maxStateBytes, `The state of ${definition.name}`);
    const status = progress.status ?? 'awaiting-input';
    const messages = messagesOf(turn, progress);
    control.onSettled((settled) => {
      if (settled.status !== status) return;
      orchestration?.settled();
      void this.remember(definition, session, turn, progress, messages);
      const policy = definition.compaction;
      if (!policy) return;
      const task = { sessionId: turn.sessionId, orchestrator: definition.name, policy };
      const seen = conversation.seen(turnIndex, messages);
      this.compactor.consider(task, conversation.head, seen, settled.settledAt ?? new Date().toISOString());
    });
    return {
      status,
      reply: { text: progress.text, ...(progress.data === undefined ? {} : { data: progress.data }) },
      report: report(status, endedBy),
      messages,
      checkpoint: nextCheckpoint(definition, claimed, lastRoute, progress.state, conversation, orchestration),
      keepCheckpoints: definition.keepCheckpoints,
      ...(orchestration ? { stateChanges: orchestration.changes() } : {}),
    };
  }

  readFailure(turn: Turn): SessionsError | undefined {
    return readOrchestratorFailure(turn) ?? readCommandFailure(turn);
  }

  /** Tells everybody of this process who listens: those of the definition, of all orchestrators, and of this turn. */
  private teller(
    { name, on }: OrchestratorDefinition,
    { id, sessionId }: Turn,
  ): (event: OrchestratorEventBody) => void {
    const about = { orchestrator: name, sessionId, turnId: id };
    // Kept for the whole attempt: the news of the turn's end may have come by the store before its last events are told.
    const own = this.contexts.listener(id);
    let over = false;
    return (body) => {
      // What a handler left running tells nobody any more.
      if (over) return;
      over = body.type === 'turn-settled';
      const event: OrchestratorEvent = { ...about, ...body };
      const listeners = [on[body.type], own] as (TurnListener | undefined)[];
      tellListeners(this.logger, event, listeners);
      this.events.emit(event);
    };
  }

  private async orchestrationOf(
    definition: OrchestratorDefinition,
    claimed: ClaimedTurn,
  ): Promise<TurnOrchestration | null> {
    const { plan } = definition;
    const { turn } = claimed;
    if (!plan) return null;
    const states = this.agents.get(plan.agent);
    const { id, sessionId, request } = turn;
    const begun = { id, sessionId, message: request.input.text };
    return TurnOrchestration.begin(begun, plan, states, this.predicates, documentsOf(definition, claimed).planDocument);
  }

  private definitionOf(turn: Turn): OrchestratorDefinition {
    const definition = this.registry.get(turn.orchestrator);
    if (!definition) throw new OrchestratorResultError(turn.orchestrator, 'is not registered in this process.');
    return definition;
  }

  private async loadSession(sessionId: string): Promise<Session> {
    const session = await this.sessions.get(sessionId);
    if (!session) throw new SessionNotFoundError(sessionId);
    return session;
  }

  private async buildContext(turn: Turn, session: Session): Promise<Readonly<Record<string, unknown>>> {
    const built = await this.contextFactory().create(turn, session);
    return Object.freeze({ ...built, ...this.contexts.get(turn.id) });
  }

  /** Never rejects: the turn has settled. */
  private async remember(
    { memory, memoryScope }: OrchestratorDefinition,
    session: Session,
    { id, sessionId, request }: Turn,
    { text }: TurnProgress,
    messages: readonly NewMessage[],
  ): Promise<void> {
    if (!memory) return;
    try {
      const scope = memoryKey(memoryScope, session);
      const turn: MemorableTurn = { scope, sessionId, turnId: id, input: request.input, reply: text, messages };
      await memory.remember(turn);
    } catch (error) {
      this.logger.error(`Turn ${hashed(id)} has settled, and the memory did not take it.`, traceOf(error));
    }
  }
}

async function recall(
  { memory, memoryScope }: OrchestratorDefinition,
  { id, sessionId, request }: Turn,
  session: Session,
): Promise<readonly JsonValue[]> {
  if (!memory) return [];
  const scope = memoryKey(memoryScope, session);
  const recalled = await memory.recall({ scope, sessionId, turnId: id, input: request.input });
  return deepFreeze(toJson(recalled, 'memories')) as readonly JsonValue[];
}

/** The documents that the turn was claimed with, see `needs`. */
function documentsOf(
  { plan, compaction }: OrchestratorDefinition,
  { documents }: ClaimedTurn,
): { readonly planDocument: StateDocument | null; readonly headDocument: StateDocument | null } {
  const [first = null, second = null] = documents;
  return { planDocument: plan ? first : null, headDocument: compaction ? (plan ? second : first) : null };
}

function messagesOf(turn: Turn, { messages }: TurnProgress): NewMessage[] {
  const own = messages.map(({ message }, index) => ({ ...message, id: message.id ?? messageId(turn.id, index + 1) }));
  const lead = own.findIndex(({ role }) => role !== 'system');
  const leading = own.slice(0, lead === -1 ? own.length : lead);
  return [...leading, userMessage(turn), ...own.slice(leading.length)];
}

function nextCheckpoint(
  { name, signature, version }: OrchestratorDefinition,
  { turn, checkpoint }: ClaimedTurn,
  lastRoute: readonly string[],
  state: JsonObject,
  conversation: TurnConversation,
  orchestration: TurnOrchestration | null,
): NewCheckpoint {
  return {
    orchestrator: name,
    sessionId: turn.sessionId,
    turnIndex: checkpoint ? checkpoint.turnIndex + 1 : 0,
    state,
    lastRoute,
    signature,
    version,
    summarizedThrough: conversation.summarizedThrough,
    turnId: turn.id,
    ...(checkpoint ? { parent: checkpoint.turnIndex } : {}),
    ...(checkpoint?.undone ? { undone: checkpoint.undone } : {}),
    ...(orchestration ? { documents: [orchestration.snapshot()] } : {}),
  };
}

interface AttemptFacts {
  readonly startedAt: number;
  readonly endedBy: EndedBy | undefined;
  readonly loop: TurnLoop | null;
  readonly tally: UsageTally;
  readonly migrated: readonly string[];
  readonly compaction: CompactionReport | undefined;
}

function reportOf(
  turn: Turn,
  status: SettledTurnStatus,
  { startedAt, endedBy, loop, tally, migrated, compaction }: AttemptFacts,
): TurnReport {
  const usage = tally.report;
  return {
    status,
    attempt: turn.failures + 1,
    durationMs: elapsed(startedAt),
    ...(endedBy === undefined ? {} : { endedBy }),
    iterations: loop?.reports ?? [],
    ...(usage ? { usage } : {}),
    ...(migrated.length > 0 ? { migrated } : {}),
    ...(compaction ? { compaction } : {}),
  };
}

/** What iterations that are over have said stays with an interrupted turn. */
function accountOf(turn: Turn, report: JsonObject, progress: TurnProgress = begin({})): AttemptAccount {
  return { report, messages: turn.request.command ? [] : messagesOf(turn, progress) };
}

function traceOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
