import { type NewCheckpoint } from '../checkpoint/checkpoint.js';
import { deepFreeze, type JsonObject, stringifyWithin, toJsonObject } from '../common/json.js';
import { type NewMessage } from '../conversation/conversation.store.js';
import { type MessageDraft } from '../conversation/message.js';
import { lastMessages } from '../conversation/window.js';
import { type SessionsError } from '../common/sessions.error.js';
import { SessionNotFoundError } from '../session/session.errors.js';
import { type OrchestrationAgents } from '../orchestration/orchestration-agents.js';
import { type StepPredicates } from '../orchestration/step-predicates.js';
import { TurnOrchestration } from '../orchestration/turn-orchestration.js';
import { type Session } from '../session/session.js';
import { type SessionStore } from '../session/session-store.service.js';
import { type TurnContexts } from '../turn/turn-contexts.js';
import { toNewTurnEvent } from '../turn/turn-event.js';
import { Parked, type RunnableOrchestrator, type TurnControl, TurnRunner } from '../turn/turn-runner.js';
import { type ClaimedTurn, type ClaimRequest, type TurnSettlement, type TurnWait } from '../turn/turn.store.js';
import { type Turn } from '../turn/turn.js';
import { messageId, userMessage } from '../turn/user-message.js';
import { mergeOutcomes, type MergedOutcome, patched } from './merge-outcomes.js';
import {
  OrchestratorDriftError,
  OrchestratorResultError,
  readOrchestratorFailure,
  UnknownIntentError,
} from './orchestrator.errors.js';
import { type OrchestratorDefinition } from './orchestrator.js';
import { type OrchestratorRegistry } from './orchestrator.registry.js';
import { type TurnContext, type TurnContextFactory, type TurnUsage } from './turn-context.js';
import { END } from './turn-outcome.js';
import { TurnSteps } from './turn-steps.js';
import { TurnToolCalls } from './turn-tool-calls.js';

/** More intents than this in one route are a mistake, not a plan. */
const MAX_FAN_OUT = 16;

/** Runs turns through their orchestrator: drift, route, dispatch, merge, and the settlement that follows. */
export class OrchestratorRunner extends TurnRunner {
  constructor(
    private readonly registry: OrchestratorRegistry,
    private readonly sessions: SessionStore,
    private readonly contexts: TurnContexts,
    private readonly contextFactory: () => TurnContextFactory,
    private readonly agents: OrchestrationAgents,
    private readonly predicates: StepPredicates,
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
    const planned = this.registry.planned();
    const windows = this.registry.windows();
    if (planned.length === 0) return { windows };
    return { windows, documents: Object.fromEntries(planned.map((name) => [name, [this.agents.get(name).name]])) };
  }

  async run(claimed: ClaimedTurn, control: TurnControl): Promise<TurnSettlement | Parked> {
    const startedAt = performance.now();
    const { turn, checkpoint } = claimed;
    const definition = this.definitionOf(turn);
    assertNoDrift(definition, claimed);

    const session = claimed.session ?? (await this.loadSession(turn.sessionId));
    const saved = checkpoint ? checkpoint.state : toJsonObject(definition.initialState(), 'initialState');
    const state = patched(saved, turn.request.statePatch ?? {});
    const context = await this.buildContext(turn, session);
    const orchestration = await this.orchestrationOf(definition, claimed);
    const calls = this.calls(claimed, control, session, state, context, orchestration);

    const { router, agents } = definition.historyWindow;
    const decision = await calls('', router, (given) => definition.route(given));
    if (decision instanceof Parked) return decision;
    const intents = toIntents(definition, decision);
    const results = await dispatch(intents, (intent) =>
      calls(intent, agents, (given) => definition.intents.get(intent)?.(given)),
    );
    if (results instanceof Parked) return results;
    orchestration?.assertSound();
    const outcome = mergeOutcomes(definition.name, state, results);
    stringifyWithin(outcome.state, definition.maxStateBytes, `The state of ${definition.name}`);
    if (orchestration) control.onSettled(() => orchestration.settled());
    return {
      status: outcome.status,
      reply: { text: outcome.text, ...(outcome.data === undefined ? {} : { data: outcome.data }) },
      report: reportOf(claimed, results, startedAt),
      messages: messagesOf(turn, outcome),
      checkpoint: nextCheckpoint(definition, claimed, intents, outcome.state),
      keepCheckpoints: definition.keepCheckpoints,
      ...(orchestration ? { stateChanges: orchestration.changes() } : {}),
    };
  }

  readFailure(turn: Turn): SessionsError | undefined {
    return readOrchestratorFailure(turn);
  }

  private async orchestrationOf(
    { plan }: OrchestratorDefinition,
    { turn, documents }: ClaimedTurn,
  ): Promise<TurnOrchestration | null> {
    if (!plan) return null;
    const states = this.agents.get(plan.agent);
    const { id, sessionId, request } = turn;
    const begun = { id, sessionId, message: request.input.text };
    return TurnOrchestration.begin(begun, plan, states, this.predicates, documents[0] ?? null);
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

  /** @returns calls one function of the orchestrator with what it is given, its own slice of history among it */
  private calls(
    { turn, checkpoint, history, steps }: ClaimedTurn,
    control: TurnControl,
    session: Session,
    state: JsonObject,
    context: Readonly<Record<string, unknown>>,
    orchestration: TurnOrchestration | null,
  ): CallIntent {
    const memo = new TurnSteps(turn.id, steps, control);
    const tools = new TurnToolCalls(memo, orchestration);
    const usage = usageOf(memo, orchestration);
    const log: readonly MessageDraft[] = turn.request.history ?? history;
    const frozenState = deepFreeze(state);
    const contextOf = (intent: string, window: number, park: (wait: TurnWait) => Promise<never>): TurnContext => ({
      id: turn.id,
      sessionId: turn.sessionId,
      session,
      input: turn.request.input,
      state: frozenState,
      history: lastMessages(log, window),
      turnIndex: checkpoint ? checkpoint.turnIndex + 1 : 0,
      iteration: 0,
      attempt: turn.failures + 1,
      attributes: turn.attributes,
      context,
      signal: control.signal,
      tools,
      usage,
      step: (name, work) => memo.run({ iteration: 0, intent }, name, work),
      waitFor: (name, options = {}) => memo.waitFor({ iteration: 0, intent }, name, options, park),
      emit: (event) => control.emit(toNewTurnEvent(event)),
    });
    return (intent, window, work) => untilParked((park) => Promise.resolve(work(contextOf(intent, window, park))));
  }
}

function usageOf(memo: TurnSteps, orchestration: TurnOrchestration | null): TurnUsage {
  return {
    add: (tokens) => {
      memo.assertOutside('turn.usage.add', 'return the usage from the step, and add it after');
      orchestration?.addUsage(tokens);
    },
    assertWithinBudget: () => orchestration?.assertBudget(),
  };
}

/** Calls the route ('') or an intent. @returns what it gave, or the wait that it came to */
type CallIntent = <T>(
  intent: string,
  window: number,
  work: (turn: TurnContext) => Promise<T> | T,
) => Promise<T | Parked>;

/** Work that parks goes no further, and is forgotten. */
function untilParked<T>(work: (park: (wait: TurnWait) => Promise<never>) => Promise<T>): Promise<T | Parked> {
  return new Promise((resolve, reject) => {
    const park = (wait: TurnWait): Promise<never> => {
      resolve(new Parked(wait));
      return new Promise<never>(() => {});
    };
    work(park).then(resolve, reject);
  });
}

/** BOT-23: nothing is dispatched over a checkpoint that another structure wrote, unless the caller adopts it. */
function assertNoDrift(definition: OrchestratorDefinition, { turn, checkpoint }: ClaimedTurn): void {
  if (!checkpoint || checkpoint.signature === definition.signature || turn.request.force) return;
  throw new OrchestratorDriftError(checkpoint.signature, definition.signature, turn.sessionId);
}

/** The decision as a list without repeats. @throws UnknownIntentError, OrchestratorResultError */
function toIntents(definition: OrchestratorDefinition, decision: unknown): string[] {
  if (decision === END) return [];
  const chosen: unknown[] = Array.isArray(decision) ? decision : [decision];
  const intents = [...new Set(chosen)];
  if (intents.length > MAX_FAN_OUT) {
    throw new OrchestratorResultError(
      definition.name,
      `the route chose ${intents.length} intents; at most ${MAX_FAN_OUT} run in one turn.`,
    );
  }
  for (const intent of intents) {
    if (typeof intent !== 'string' || !definition.intents.has(intent)) {
      throw new UnknownIntentError(definition.name, String(intent), [...definition.intents.keys()]);
    }
  }
  return intents as string[];
}

interface IntentRun {
  readonly intent: string;
  readonly value: unknown;
  readonly durationMs: number;
}

/** Runs the intents in parallel and waits for all of them: none goes on behind a turn that has failed. */
async function dispatch(
  intents: readonly string[],
  call: (intent: string) => Promise<unknown>,
): Promise<IntentRun[] | Parked> {
  const runs = intents.map(async (intent): Promise<IntentRun> => {
    const startedAt = performance.now();
    const value = await call(intent);
    return { intent, value, durationMs: elapsed(startedAt) };
  });
  const settled = await Promise.allSettled(runs);
  const failed = settled.find((run) => run.status === 'rejected');
  if (failed) throw failed.reason;
  const results = settled.flatMap((run) => (run.status === 'fulfilled' ? [run.value] : []));
  // The others are done, and what they stored is remembered; when this signal is there, the next wait follows.
  return results.map(({ value }) => value).find((value) => value instanceof Parked) ?? results;
}

function messagesOf(turn: Turn, { messages }: MergedOutcome): NewMessage[] {
  const own = messages.map((message, index) => ({ ...message, id: message.id ?? messageId(turn.id, index + 1) }));
  const lead = own.findIndex(({ role }) => role !== 'system');
  const leading = own.slice(0, lead === -1 ? own.length : lead);
  return [...leading, userMessage(turn), ...own.slice(leading.length)];
}

function nextCheckpoint(
  { name, signature, version }: OrchestratorDefinition,
  { turn, checkpoint }: ClaimedTurn,
  lastRoute: readonly string[],
  state: JsonObject,
): NewCheckpoint {
  return {
    orchestrator: name,
    sessionId: turn.sessionId,
    turnIndex: checkpoint ? checkpoint.turnIndex + 1 : 0,
    state,
    lastRoute,
    signature,
    version,
    summarizedThrough: checkpoint?.summarizedThrough ?? 0,
    turnId: turn.id,
    ...(checkpoint ? { parent: checkpoint.turnIndex } : {}),
  };
}

function reportOf({ turn }: ClaimedTurn, results: readonly IntentRun[], startedAt: number): JsonObject {
  return {
    attempt: turn.failures + 1,
    durationMs: elapsed(startedAt),
    intents: results.map(({ intent, durationMs }) => ({ intent, durationMs })),
  };
}

function elapsed(since: number): number {
  return Math.round(performance.now() - since);
}
