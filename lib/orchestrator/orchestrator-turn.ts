import { type Checkpoint } from '../ledger/checkpoint.js';
import { assertWithin, deepFreeze, type JsonObject, stringifyWithin } from '../common/json.js';
import { tokensOf } from '../common/token-counts.js';
import { interruptedResults } from '../conversation/close-calls.js';
import { type NewMessage } from '../ledger/conversation.store.js';
import { type StepPlan } from '../orchestration/step-plan.js';
import { type OrchestratedTurn, TurnOrchestration } from '../orchestration/turn-orchestration.js';
import { type Session } from '../ledger/session.js';
import { ModuleJournal } from '../state/module-journal.js';
import { TaskError } from '../state/task.errors.js';
import { type StateChange } from '../ledger/state.store.js';
import { type NewTurnEvent, toNewTurnEvent } from '../ledger/turn-event.js';
import { type PartialOutcome, AwaitingSignal, type AttemptHandle } from '../turn/turn-runner.js';
import { type ClaimedTurn, type TurnSettlement } from '../ledger/turn.store.js';
import { attemptNumber, type SettledTurnStatus, type Turn, type TurnCommand } from '../ledger/turn.js';
import { type SpentTokens, type TurnSpending } from '../ledger/turn-usage.js';
import { patched, toPatch } from './intent-outcome.js';
import { adviseOnState } from './state-advice.js';
import { type OrchestratorDefinition } from './orchestrator.js';
import { type OrchestratorEventBody } from './orchestrator-events.js';
import { assertState } from './state-schema.js';
import { type AttemptContext, TurnCalls } from './turn-calls.js';
import { TurnContextFactory, type TurnModules, type TurnTask } from './turn-context.js';
import { TurnConversation } from './turn-conversation.js';
import { storedIterations, TurnLoop } from './turn-loop.js';
import { TurnMemory } from './turn-memory.js';
import { replacing, type TurnToRun, undoOfPlan, withReplacement } from './replacement.js';
import { type LoadState } from './rewind.js';
import { type TurnParts } from './turn-parts.js';
import { TurnModuleState } from './turn-module-state.js';
import { advance, begin, messagesOf, type TurnProgress } from './turn-progress.js';
import { type EndedBy } from './turn-report.js';
import { toCheckpoint, toMessages, toReport } from './turn-settlement.js';
import { TurnStart } from './turn-start.js';
import { TurnSteps } from './turn-steps.js';
import { TurnToolCalls } from './turn-tool-calls.js';
import { UsageTally } from './usage-tally.js';

/**
 * Runs one attempt of a turn: loads the session and state, checks drift, cuts the history, runs the loop and builds the
 * settlement.
 */
export class OrchestratorTurn {
  private readonly startedAt = performance.now();
  private readonly tally: UsageTally;
  private conversation: TurnConversation;
  private loop: TurnLoop | null = null;
  private orchestration: TurnOrchestration | null = null;
  private readonly start: TurnStart;

  constructor(
    private readonly parts: TurnParts,
    private readonly definition: OrchestratorDefinition,
    private turn: TurnToRun,
    private readonly handle: AttemptHandle,
    private readonly tell: (event: OrchestratorEventBody) => void,
  ) {
    const { claimed } = turn;
    this.conversation = this.claimedConversation();
    this.tally = new UsageTally(claimed.turn.usage);
    this.start = new TurnStart(definition, claimed, parts.sessions, tell);
    handle.onUnfinished((status) => this.partialOutcome(status));
    handle.onSpending({ read: () => this.spending(), recorded: ({ usage }) => this.recorded(usage) });
    handle.onSettled((turn) => this.tellEnd(turn));
  }

  run(): Promise<TurnSettlement | AwaitingSignal> {
    const { command, replaces } = this.claimed.turn.request;
    this.tell({ type: 'turn-starting', attempt: attemptNumber(this.claimed.turn) });
    if (command) return this.runCommand(command);
    return replaces === undefined ? this.converse() : this.replace(replaces);
  }

  private get claimed(): ClaimedTurn {
    return this.turn.claimed;
  }

  private claimedConversation(): TurnConversation {
    const { claimed, documents } = this.turn;
    return new TurnConversation(this.definition, claimed, documents.head, this.parts.tokens, this.tell);
  }

  /**
   * True if the turn writes to the log: the module must be enabled in this process and in the one that accepted the
   * turn.
   */
  private get isLogged(): boolean {
    return this.parts.logsConversations && !this.claimed.turn.request.unlogged;
  }

  private async runCommand(command: TurnCommand): Promise<TurnSettlement> {
    await this.start.session();
    const load = async (from: Checkpoint | null): Promise<JsonObject> => this.start.state(from);
    const settlement = await this.parts.commands.run(command, this.definition, this.claimed, load);
    return { ...settlement, report: this.report(settlement.status) };
  }

  /** Runs the turn as if the turns that it replaces had been undone (AIS-07). */
  private async replace(turnId: string): Promise<TurnSettlement | AwaitingSignal> {
    const { definition, handle, parts, start, turn } = this;
    const load: LoadState = async (checkpoint) => {
      await start.session();
      return start.state(checkpoint);
    };
    const replacement = replacing(turnId, parts.rewind, definition, turn, load);
    // A stopped turn keeps its messages even if it cannot replace the earlier turns.
    handle.onKept((settlement) =>
      replacement.then(
        (ready) => withReplacement(settlement, ready),
        () => settlement,
      ),
    );
    this.turn = await replacement;
    this.conversation = this.claimedConversation();
    return this.converse();
  }

  private async converse(): Promise<TurnSettlement | AwaitingSignal> {
    const { definition, claimed, handle, tally, conversation } = this;
    const { turn } = claimed;
    // Await only promises: synchronous results need no pause.
    const found = this.start.session();
    const session = found instanceof Promise ? await found : found;
    const loaded = this.turn.replacement?.state ?? this.start.state(claimed.checkpoint);
    const stored = loaded instanceof Promise ? await loaded : loaded;
    const state = turn.request.statePatch ? patched(stored, toPatch(turn.request.statePatch)) : stored;
    if (conversation.hasGaps && this.parts.logsConversations) await conversation.load(this.parts.log);

    const memory = definition.memory && new TurnMemory(definition.memory, definition.memoryScope, turn, session);
    const orchestration = definition.plan ? await this.beginOrchestration(definition.plan) : null;
    this.orchestration = orchestration;
    const summaries = conversation.usage;
    if (summaries) orchestration?.addUsage(summaries);
    const memo = new TurnSteps(turn.id, claimed.steps, handle);
    handle.onChildTurn(() => memo.saveDecision());
    handle.onLimit(() => memo.runningParts);
    const journal = new ModuleJournal(this.parts.state, turn.sessionId);
    const modules = new TurnModuleState(turn.sessionId, journal, this.parts.modules, memo);
    const attempt: AttemptContext = {
      id: turn.id,
      sessionId: turn.sessionId,
      session,
      input: turn.request.input,
      turnIndex: this.start.turnIndex,
      attempt: attemptNumber(turn),
      attributes: turn.attributes,
      task: turn.request.taskId === undefined ? undefined : await this.task(turn.request.taskId, modules),
      context: this.contextOver(await this.builtContext(session)),
      memories: memory ? await memory.recall() : [],
      signal: handle.signal,
      tools: new TurnToolCalls(memo, orchestration),
      modules,
      emit: (given) => {
        let event: NewTurnEvent;
        try {
          event = toNewTurnEvent(given);
        } catch (error) {
          return memo.hand('turn.emit', () => Promise.reject(error as Error));
        }
        if (!handle.signal.aborted) this.tell({ type: 'delta', event });
        const deciding = memo.saveDecision();
        // If the decision cannot be stored, the attempt ends, and its events are dropped.
        if (deciding) return deciding.then(() => handle.emit(event), noEvent);
        return handle.emit(event);
      },
      flush: () => this.flush(memo),
      emitted: () => memo.hand('turn.emitted', () => this.flush(memo).then(() => handle.emitted())),
    };
    const calls = new TurnCalls(attempt, conversation.window, memo, tally, orchestration, handle.telemetry);
    const { tell } = this;
    const { maxReplyBytes } = handle;
    const loop = new TurnLoop({ definition, calls, memo, orchestration, journal, tell, maxReplyBytes }, state);
    this.loop = loop;
    let endedBy: EndedBy | AwaitingSignal;
    try {
      endedBy = await loop.run();
    } catch (error) {
      adviseOnState(error, definition, state, claimed.checkpoint?.version ?? definition.version);
      throw error;
    }
    // Store the decision, so that the events which wait for it belong to the attempt.
    const deciding = memo.saveDecision();
    if (deciding) await deciding;
    if (endedBy instanceof AwaitingSignal) return endedBy;
    orchestration?.assertSound();
    journal.close();
    // Await only when there are changes: an interrupt during the pause would find that the answer was already given.
    const written = journal.isEmpty ? [] : await journal.changes();
    if (definition.stateSchema) await assertState(definition.name, definition.stateSchema, loop.progress.state);
    return this.settlement(loop, endedBy, orchestration, written, memory);
  }

  /** Stores the emitted events, after the decision that they wait for. */
  private async flush(memo: TurnSteps): Promise<void> {
    const deciding = memo.saveDecision();
    if (deciding) await deciding.then(noEvent, noEvent);
    await this.handle.flush();
  }

  /** Returns the turn's task. @throws TaskError (`TASK_NOT_FOUND`) */
  private async task(taskId: string, modules: TurnModules): Promise<TurnTask> {
    const task = await modules.task.get(taskId);
    if (!task) throw new TaskError('TASK_NOT_FOUND', this.claimed.turn.sessionId, taskId);
    return task;
  }

  private settlement(
    { progress, lastRoute }: TurnLoop,
    endedBy: EndedBy,
    orchestration: TurnOrchestration | null,
    modules: readonly StateChange[],
    memory: TurnMemory | undefined,
  ): TurnSettlement {
    const { definition, claimed, conversation } = this;
    const { turnIndex } = this.start;
    const { state, text, data, status = 'awaiting-input' } = progress;
    // Each intent may be within the limit, but not all of them together.
    assertWithin({ text, data: data ?? null }, this.handle.maxReplyBytes, 'The reply');
    stringifyWithin(state, definition.maxStateBytes, `The state of ${definition.name}`);
    const messages = toMessages(claimed.turn, messagesOf(progress));
    const usage = this.tally.totalWith(conversation.usage);
    const { replacement } = this.turn;
    const changes = [...(replacement?.head ?? []), ...(orchestration?.changes() ?? []), ...modules];
    this.handle.onSettled((settled) => {
      // The settlement was rejected, and the turn failed.
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
      checkpoint: toCheckpoint({
        definition,
        claimed,
        replacement,
        turnIndex,
        conversation,
        orchestration,
        state,
        lastRoute,
      }),
      keepCheckpoints: definition.keepCheckpoints,
      ...(changes.length > 0 ? { stateChanges: changes } : {}),
    };
  }

  private considerCompaction({ settledAt }: Turn, messages: readonly NewMessage[]): void {
    const { name, compaction: policy } = this.definition;
    if (!policy) return;
    const task = { sessionId: this.claimed.turn.sessionId, orchestrator: name, policy };
    const seen = this.conversation.seen(this.start.turnIndex, messages);
    this.parts.compactor.consider(task, this.conversation.head, seen, settledAt ?? new Date().toISOString());
  }

  private beginOrchestration(plan: StepPlan): Promise<TurnOrchestration> {
    const { agents, predicates } = this.parts;
    const { turn, hold } = this.claimed;
    const { id, sessionId, request, usage } = turn;
    const states = agents.get(plan.agent);
    const begun: OrchestratedTurn = {
      id,
      sessionId,
      message: request.input.text,
      usage,
      fence: hold.fence,
      write: (call) => this.handle.write(call),
      undo: undoOfPlan(this.turn.replacement),
    };
    return TurnOrchestration.begin(begun, plan, states, predicates, this.turn.documents.plan);
  }

  private builtContext(session: Session): Record<string, unknown> | Promise<Record<string, unknown>> {
    const factory = this.parts.contextFactory();
    // The default factory does not use them.
    if (factory.create === TurnContextFactory.prototype.create) return {};
    return factory.create(deepFreeze(this.claimed.turn), deepFreeze(session));
  }

  /** Merges the caller's context over the one that the factory built. */
  private contextOver(built: Record<string, unknown>): Readonly<Record<string, unknown>> {
    return Object.freeze({ ...built, ...this.parts.contexts.get(this.claimed.turn.id) });
  }

  private tellEnd({ status, turnIndex, error }: Turn): void {
    this.orchestration?.ended();
    if (turnIndex !== undefined) this.tell({ type: 'checkpoint-persisted', turnIndex });
    this.tell({
      type: 'turn-settled',
      status: status as SettledTurnStatus,
      ...(turnIndex === undefined ? {} : { turnIndex }),
      ...(error?.code === undefined ? {} : { code: error.code }),
    });
  }

  private report(status: SettledTurnStatus, endedBy?: EndedBy): JsonObject {
    const { claimed, conversation, tally, start, startedAt } = this;
    const iterations = this.loop?.reports ?? [];
    return toReport({ claimed, conversation, tally, migrated: start.migrated, iterations, startedAt }, status, endedBy);
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

  /** Rebuilds the progress from iterations that an earlier attempt completed. */
  private storedProgress(): TurnProgress {
    const { turn, steps } = this.claimed;
    return storedIterations(this.definition, new TurnSteps(turn.id, steps, this.handle)).reduce(
      (progress, { outcomes, evaluation }) => advance(progress, outcomes, evaluation),
      begin({}),
    );
  }

  /** Keeps the messages of completed iterations when the turn is interrupted, with a result for each call. */
  private partialOutcome(status: 'failed' | 'cancelled'): PartialOutcome {
    const { turn } = this.claimed;
    const change = this.orchestration?.withdrawal();
    const about = { report: this.report(status), ...(change ? { change } : {}) };
    if (!this.isLogged || turn.request.command) return { ...about, messages: [] };
    const said = messagesOf(this.loop?.progress ?? this.storedProgress());
    return { ...about, messages: toMessages(turn, [...said, ...interruptedResults(said)]) };
  }
}

const noEvent = (): void => {};
