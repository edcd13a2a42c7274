import { type Checkpoint, type NewCheckpoint } from '../ledger/checkpoint.js';
import { type BackgroundWork } from '../common/background-work.js';
import { assertWithin, deepFreeze, type JsonObject, stringifyWithin } from '../common/json.js';
import { type Mutable } from '../common/mutable.js';
import { tokensOf } from '../common/token-usage.js';
import { type ConversationLog, type NewMessage } from '../ledger/conversation.store.js';
import { type ConversationCompactor } from '../conversation/conversation-compactor.service.js';
import { type MessageTokens } from '../conversation/message-tokens.js';
import { type OrchestrationAgents } from '../orchestration/orchestration-agents.js';
import { type StepPlan } from '../orchestration/step-plan.js';
import { type StepPredicates } from '../orchestration/step-predicates.js';
import { TurnOrchestration } from '../orchestration/turn-orchestration.js';
import { SessionNotFoundError } from '../ledger/session.errors.js';
import { type Session } from '../ledger/session.js';
import { type SessionStore } from '../session/session-store.service.js';
import { ModuleJournal } from '../state/module-journal.js';
import { TaskNotFoundError } from '../state/task.errors.js';
import { type StateChange, type StateDocument, type StateStore } from '../ledger/state.store.js';
import { type TurnContexts } from '../turn/turn-contexts.js';
import { toNewTurnEvent } from '../ledger/turn-event.js';
import { type AttemptAccount, Parked, type TurnControl } from '../turn/turn-runner.js';
import { type ClaimedTurn, type TurnSettlement } from '../ledger/turn.store.js';
import { attemptNumber, type SettledTurnStatus, type Turn, type TurnCommand } from '../ledger/turn.js';
import { type SpentTokens, type TurnSpending } from '../ledger/turn-usage.js';
import { messageId, userMessage } from '../ledger/user-message.js';
import { patched, toPatch } from './intent-outcome.js';
import { findState } from './find-state.js';
import { intentsOf } from './orchestrator-signature.js';
import { type OrchestratorDefinition } from './orchestrator.js';
import { type OrchestratorEventBody } from './orchestrator-events.js';
import { migrateState, type StateMigration } from './state-migrations.js';
import { assertState } from './state-schema.js';
import { type AttemptContext, elapsed, TurnCalls } from './turn-calls.js';
import { type TurnCommands } from './turn-commands.js';
import { TurnContextFactory, type TurnModules, type TurnTask } from './turn-context.js';
import { TurnConversation } from './turn-conversation.js';
import { storedIterations, TurnLoop } from './turn-loop.js';
import { TurnMemory } from './turn-memory.js';
import { type ModuleRules, TurnModuleState } from './turn-module-state.js';
import { advance, begin, type TurnProgress } from './turn-progress.js';
import { asJson, type EndedBy, type TurnReport } from './turn-report.js';
import { TurnSteps } from './turn-steps.js';
import { TurnToolCalls } from './turn-tool-calls.js';
import { toUsageReport, UsageTally } from './usage-tally.js';

/** What all turns of a process work with. */
export interface TurnParts {
  readonly sessions: SessionStore;
  readonly contexts: TurnContexts;
  readonly contextFactory: () => TurnContextFactory;
  readonly agents: OrchestrationAgents;
  readonly predicates: StepPredicates;
  readonly tokens: MessageTokens;
  readonly compactor: ConversationCompactor;
  readonly log: ConversationLog;
  /** Whether turns of this process read and write the log (FIX-46). */
  readonly logsConversations: boolean;
  readonly state: StateStore;
  readonly modules: ModuleRules;
  readonly commands: TurnCommands;
  /** What goes on after a turn has settled. */
  readonly background: BackgroundWork;
}

/** The state documents that a turn was claimed with; `null` for what its orchestrator does not need, or is not there. */
export interface TurnDocuments {
  readonly plan: StateDocument | null;
  readonly head: StateDocument | null;
}

/** One attempt of a turn at its orchestrator: load, drift, window, the loop, and the settlement that follows. */
export class OrchestratorTurn {
  private readonly startedAt = performance.now();
  private readonly tally: UsageTally;
  private readonly conversation: TurnConversation;
  private loop: TurnLoop | null = null;
  private orchestration: TurnOrchestration | null = null;
  private migrated: readonly string[] = [];

  constructor(
    private readonly parts: TurnParts,
    private readonly definition: OrchestratorDefinition,
    private readonly claimed: ClaimedTurn,
    private readonly documents: TurnDocuments,
    private readonly control: TurnControl,
    private readonly tell: (event: OrchestratorEventBody) => void,
  ) {
    this.conversation = new TurnConversation(definition, claimed, documents.head, parts.tokens, tell);
    this.tally = new UsageTally(claimed.turn.usage);
    control.onUnfinished((status) => this.account(status));
    control.onSpending({ read: () => this.spending(), recorded: ({ usage }) => this.recorded(usage) });
    control.onSettled((turn) => this.tellEnd(turn));
  }

  run(): Promise<TurnSettlement | Parked> {
    const { request } = this.claimed.turn;
    this.tell({ type: 'turn-starting', attempt: attemptNumber(this.claimed.turn) });
    return request.command ? this.obey(request.command) : this.converse();
  }

  private get turnIndex(): number {
    const { checkpoint } = this.claimed;
    return checkpoint ? checkpoint.turnIndex + 1 : 0;
  }

  /** Whether the turn writes to the log: in the process that accepted it and in this one the module is enabled. */
  private get isLogged(): boolean {
    return this.parts.logsConversations && !this.claimed.turn.request.unlogged;
  }

  private async obey(command: TurnCommand): Promise<TurnSettlement> {
    await this.loadSession();
    const load = async (from: Checkpoint | null): Promise<JsonObject> => this.load(from);
    const settlement = await this.parts.commands.run(command, this.definition, this.claimed, load);
    return { ...settlement, report: this.report(settlement.status) };
  }

  private async converse(): Promise<TurnSettlement | Parked> {
    const { definition, claimed, control, tally, conversation } = this;
    const { turn } = claimed;
    const session = claimed.session ? this.loaded(claimed.session) : await this.loadSession();
    const loaded = this.load(claimed.checkpoint);
    const stored = loaded instanceof Promise ? await loaded : loaded;
    const state = turn.request.statePatch ? patched(stored, toPatch(turn.request.statePatch)) : stored;
    if (conversation.hasGaps && this.parts.logsConversations) await conversation.load(this.parts.log);

    const memory = definition.memory && new TurnMemory(definition.memory, definition.memoryScope, turn, session);
    const orchestration = definition.plan ? await this.beginOrchestration(definition.plan) : null;
    this.orchestration = orchestration;
    const summaries = conversation.usage;
    if (summaries) orchestration?.addUsage(summaries);
    const memo = new TurnSteps(turn.id, claimed.steps, control);
    const journal = new ModuleJournal(this.parts.state, turn.sessionId);
    const modules = new TurnModuleState(turn.sessionId, journal, this.parts.modules, memo);
    const attempt: AttemptContext = {
      id: turn.id,
      sessionId: turn.sessionId,
      session,
      input: turn.request.input,
      turnIndex: this.turnIndex,
      attempt: attemptNumber(turn),
      attributes: turn.attributes,
      task: turn.request.taskId === undefined ? undefined : await this.task(turn.request.taskId, modules),
      context: this.contextOver(await this.builtContext(session)),
      memories: memory ? await memory.recall() : [],
      signal: control.signal,
      tools: new TurnToolCalls(memo, orchestration),
      modules,
      emit: (given) => {
        const event = toNewTurnEvent(given);
        if (!control.signal.aborted) this.tell({ type: 'delta', event });
        const deciding = memo.saveDecision();
        // Without a decision the attempt ends, and its events with it.
        if (deciding) return deciding.then(() => control.emit(event), noEvent);
        return control.emit(event);
      },
    };
    const calls = new TurnCalls(attempt, conversation.window, memo, tally, orchestration, control.telemetry);
    const loop = new TurnLoop(definition, calls, memo, orchestration, journal, this.tell, state, control.maxReplyBytes);
    this.loop = loop;
    const endedBy = await loop.run();
    // Events that wait for the decision belong to the attempt.
    const deciding = memo.saveDecision();
    if (deciding) await deciding;
    if (endedBy instanceof Parked) return endedBy;
    orchestration?.assertSound();
    // Without a pause where there is none to make: an interrupt that came in it would find the answer given.
    const written = journal.isEmpty ? [] : await journal.changes();
    if (definition.stateSchema) await assertState(definition.name, definition.stateSchema, loop.progress.state);
    return this.settlement(loop, endedBy, orchestration, written, memory);
  }

  private async loadSession(): Promise<Session> {
    const { sessionId } = this.claimed.turn;
    if (this.claimed.session) return this.loaded(this.claimed.session);
    const foreign = await this.parts.sessions.get(sessionId);
    if (!foreign) throw new SessionNotFoundError(sessionId);
    // A copy: the turn freezes it, and the object belongs to the adapter.
    return this.loaded(structuredClone(foreign));
  }

  private loaded(session: Session): Session {
    this.tell({ type: 'session-loaded', session, turnIndex: this.turnIndex });
    return session;
  }

  /** A promise only where the state is migrated. */
  private load(checkpoint: Checkpoint | null): JsonObject | Promise<JsonObject> {
    const { state, drifted, path } = findState(this.definition, { turn: this.claimed.turn, checkpoint });
    if (path.length > 0) return this.migrate(state, path);
    this.tell({ type: 'drift-checked', drifted, migrated: [] });
    return state;
  }

  private async migrate(state: JsonObject, path: readonly StateMigration[]): Promise<JsonObject> {
    const migrated = await migrateState(path, state);
    this.migrated = [path[0].from, ...path.map(({ to }) => to)];
    this.tell({ type: 'drift-checked', drifted: true, migrated: this.migrated });
    return migrated;
  }

  /** The task that the turn is of. @throws TaskNotFoundError */
  private async task(taskId: string, modules: TurnModules): Promise<TurnTask> {
    const task = await modules.task.get(taskId);
    if (!task) throw new TaskNotFoundError(this.claimed.turn.sessionId, taskId);
    return task;
  }

  private settlement(
    { progress, lastRoute }: TurnLoop,
    endedBy: EndedBy,
    orchestration: TurnOrchestration | null,
    modules: readonly StateChange[],
    memory: TurnMemory | undefined,
  ): TurnSettlement {
    const { definition } = this;
    const { state, text, data, status = 'awaiting-input' } = progress;
    // Several intents may each have stayed within the limit.
    assertWithin({ text, data: data ?? null }, this.control.maxReplyBytes, 'The reply');
    stringifyWithin(state, definition.maxStateBytes, `The state of ${definition.name}`);
    const messages = messagesOf(this.claimed.turn, progress);
    const usage = this.tally.totalWith(this.conversation.usage);
    const changes = orchestration ? [...orchestration.changes(), ...modules] : modules;
    this.control.onSettled((settled) => {
      // Its settlement was refused, and it failed.
      if (settled.status !== status) return;
      orchestration?.settled();
      if (memory) this.parts.background.add(memory.remember(text, messages));
      this.considerCompaction(settled, messages);
    });
    return {
      status,
      reply: { text, ...(data === undefined ? {} : { data }) },
      report: this.report(status, endedBy),
      ...(usage ? { usage } : {}),
      messages: this.isLogged ? messages : [],
      checkpoint: this.nextCheckpoint(lastRoute, state, orchestration),
      keepCheckpoints: definition.keepCheckpoints,
      ...(changes.length > 0 ? { stateChanges: changes } : {}),
    };
  }

  private nextCheckpoint(
    lastRoute: readonly string[],
    state: JsonObject,
    orchestration: TurnOrchestration | null,
  ): NewCheckpoint {
    const { name, signature, version } = this.definition;
    const { turn, checkpoint } = this.claimed;
    const { log, undone, summarizedThrough, snapshots } = this.conversation;
    const documents = orchestration ? [orchestration.snapshot(), ...snapshots] : snapshots;
    const next: Mutable<NewCheckpoint> = {
      orchestrator: name,
      sessionId: turn.sessionId,
      turnIndex: this.turnIndex,
      state,
      lastRoute,
      signature,
      version,
      intents: intentsOf(this.definition),
      summarizedThrough,
      turnId: turn.id,
    };
    if (log !== '') next.log = log;
    if (checkpoint) next.parent = checkpoint.turnIndex;
    if (undone.length > 0) next.undone = undone;
    if (documents.length > 0) next.documents = documents;
    return next;
  }

  private considerCompaction({ settledAt }: Turn, messages: readonly NewMessage[]): void {
    const { name, compaction: policy } = this.definition;
    if (!policy) return;
    const task = { sessionId: this.claimed.turn.sessionId, orchestrator: name, policy };
    const seen = this.conversation.seen(this.turnIndex, messages);
    this.parts.compactor.consider(task, this.conversation.head, seen, settledAt ?? new Date().toISOString());
  }

  private beginOrchestration(plan: StepPlan): Promise<TurnOrchestration> {
    const { agents, predicates } = this.parts;
    const { id, sessionId, request, usage } = this.claimed.turn;
    const begun = { id, sessionId, message: request.input.text, usage };
    return TurnOrchestration.begin(begun, plan, agents.get(plan.agent), predicates, this.documents.plan);
  }

  private builtContext(session: Session): Record<string, unknown> | Promise<Record<string, unknown>> {
    const factory = this.parts.contextFactory();
    // The default one reads nothing.
    if (factory.create === TurnContextFactory.prototype.create) return {};
    return factory.create(deepFreeze(this.claimed.turn), deepFreeze(session));
  }

  /** What the caller gave goes over what the factory built. */
  private contextOver(built: Record<string, unknown>): Readonly<Record<string, unknown>> {
    return Object.freeze({ ...built, ...this.parts.contexts.get(this.claimed.turn.id) });
  }

  private tellEnd({ status, turnIndex, error }: Turn): void {
    if (turnIndex !== undefined) this.tell({ type: 'checkpoint-persisted', turnIndex });
    this.tell({
      type: 'turn-settled',
      status: status as SettledTurnStatus,
      ...(turnIndex === undefined ? {} : { turnIndex }),
      ...(error?.code === undefined ? {} : { code: error.code }),
    });
  }

  private report(status: SettledTurnStatus, endedBy?: EndedBy): JsonObject {
    // What a turn reports, its checkpoint has seen: those that did not come to one leave it to the next.
    const spent = endedBy === undefined ? null : this.conversation.usage;
    const compaction = this.conversation.compaction(spent);
    const usage = this.tally.totalWith(spent);
    const report: Mutable<TurnReport> = {
      status,
      attempt: attemptNumber(this.claimed.turn),
      durationMs: elapsed(this.startedAt),
      iterations: this.loop?.reports ?? [],
    };
    if (endedBy !== undefined) report.endedBy = endedBy;
    if (usage) report.usage = toUsageReport(usage);
    if (this.migrated.length > 0) report.migrated = this.migrated;
    if (compaction) report.compaction = compaction;
    return asJson(report);
  }

  private spending(): TurnSpending | null {
    const usage = this.tally.unrecorded;
    if (!usage) return null;
    const change = this.orchestration?.spending(tokensOf(usage));
    return change ? { usage, change } : { usage };
  }

  private recorded(usage: SpentTokens): void {
    this.tally.recorded(usage);
    this.orchestration?.recorded();
  }

  /** Of iterations that an earlier attempt completed. */
  private storedProgress(): TurnProgress {
    const { turn, steps } = this.claimed;
    return storedIterations(this.definition, new TurnSteps(turn.id, steps, this.control)).reduce(
      (progress, { outcomes, evaluation }) => advance(progress, outcomes, evaluation),
      begin({}),
    );
  }

  /** What iterations that are over have said stays with an interrupted turn. */
  private account(status: 'failed' | 'cancelled'): AttemptAccount {
    const { turn } = this.claimed;
    const isSaid = this.isLogged && !turn.request.command;
    const messages = isSaid ? messagesOf(turn, this.loop?.progress ?? this.storedProgress()) : [];
    return { report: this.report(status), messages };
  }
}

const noEvent = (): void => {};

/** The user's message and what the turn adds to it; system messages at the beginning go before it. */
function messagesOf(turn: Turn, { messages }: TurnProgress): NewMessage[] {
  const own = messages.map(({ message }, index) => ({ ...message, id: message.id ?? messageId(turn.id, index + 1) }));
  const lead = own.findIndex(({ role }) => role !== 'system');
  const leading = own.slice(0, lead === -1 ? own.length : lead);
  return [...leading, userMessage(turn), ...own.slice(leading.length)];
}
