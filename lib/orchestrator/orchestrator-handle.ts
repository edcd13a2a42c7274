import { type CompactionResult } from '../conversation/compaction-run.js';
import { type Session } from '../ledger/session.js';
import { handOut } from '../turn/running-turn.js';
import { type SubmitOptions, type TurnInputLike, type WaitOptions } from '../turn/turn.inputs.js';
import { type TurnResult } from '../turn/turn-result.js';
import { type TurnStream } from '../turn/turn-stream.js';
import { type Turn } from '../ledger/turn.js';
import {
  orchestratorTool,
  type OrchestratorTool,
  type OrchestratorToolCaller,
  type OrchestratorToolOptions,
} from './orchestrator-tool.js';
import { type OrchestratorPlace } from './orchestrator-place.js';
import { type ForkOptions, type HistoryQuery, type UndoOptions } from './time-travel.inputs.js';
import { type HistoryEntry, type UndoResult } from './time-travel.js';
import { type OrchestratorEvent, type OrchestratorEvents, type OrchestratorEventType } from './orchestrator-events.js';

/** The state type only documents: it ties a handle to its orchestrator in the reader's mind and in the editor. */
export interface OrchestratorSubmitOptions<State> extends Omit<SubmitOptions, 'state' | 'onEvent'> {
  /** Merged into the state before dispatch; top-level keys. Default: nothing. */
  readonly state?: Partial<State>;
  /** Told what happens to the turn while it runs in this process; what it throws is logged. Default: nobody is told. */
  readonly onEvent?: (event: OrchestratorEvent) => unknown;
}

export interface OrchestratorExecuteOptions<State> extends OrchestratorSubmitOptions<State> {
  /** Milliseconds after which the caller stops waiting; the turn goes on. Default: no limit. */
  readonly timeoutMs?: number;
}

/** What a command about a session's conversation is given. */
export interface ConversationCommandArgs {
  readonly sessionId: string;
}

/** What `@InjectOrchestrator` gives: one orchestrator, ready to take turns (BOT-01). */
export class OrchestratorHandle<State = Record<string, unknown>> {
  /** @hidden */
  constructor(
    readonly name: string,
    private readonly find: () => OrchestratorPlace,
    private readonly findEvents: () => OrchestratorEvents,
  ) {}

  /** Of the definition that this process runs. */
  get version(): string {
    return this.find().definition.version;
  }

  /** SHA-256 of the orchestrator's structure; known once the application has started. */
  get signature(): string {
    return this.find().definition.signature;
  }

  /** One turn, waited for. @throws as `TurnService.execute`, and OrchestratorDriftError */
  execute(input: TurnInputLike, options: OrchestratorExecuteOptions<State>): Promise<TurnResult> {
    return handOut('handle.execute', async () => this.find().turns.execute(this.name, input, options));
  }

  /** Accepts a turn and returns at once. @throws as `TurnService.submit` */
  submit(input: TurnInputLike, options: OrchestratorSubmitOptions<State>): Promise<Turn> {
    return handOut('handle.submit', async () => this.find().turns.submit(this.name, input, options));
  }

  /**
   * One turn while it runs: a `for await` over it gives what its handler emits, and at last `settled`; its `result` is what
   * `execute` gives. What is wrong with the turn rejects there; nothing is thrown here.
   */
  stream(input: TurnInputLike, options: OrchestratorSubmitOptions<State>): TurnStream {
    return this.find().turns.stream(this.name, input, options);
  }

  /**
   * Continues the turn that was interrupted, with its own input, history and stored steps, and waits for its result: at once,
   * where the module would do it by itself within a moment. A turn that a live worker runs is left to it, and waited for.
   * When the module was faster, the result is the same, also when called again, until the next turn ends (FIX-14).
   * @returns `null` when no turn was interrupted: none of this orchestrator is open, and its latest one, among the last 20
   * that ended in the session, lost no worker; or the open turn waits for a signal
   * @throws as `execute`
   */
  resume(sessionId: string, options?: WaitOptions): Promise<TurnResult | null> {
    return handOut('handle.resume', async () => this.find().turns.resume(this.name, sessionId, options));
  }

  /** The session's checkpoints of this orchestrator, the latest first (BOT-25). @throws InvalidInputError */
  async history(sessionId: string, query: HistoryQuery = {}): Promise<HistoryEntry<State>[]> {
    return (await this.find().timeTravel.history(this.name, sessionId, query)) as HistoryEntry<State>[];
  }

  /**
   * Takes the last turn back, and again the one before it, up to the state before the first: a turn of its own, which waits
   * for those before it in the lane. The state, and what the plan knows but for tokens, are as before that turn; its messages
   * are given to no turn of this orchestrator any more. The log keeps them.
   * @throws NothingToUndoError; CheckpointPrunedError when `keepCheckpoints` does not reach so far; otherwise as `execute`
   */
  undo(sessionId: string, options: UndoOptions = {}): Promise<UndoResult> {
    return handOut('handle.undo', async () => this.find().timeTravel.undo(this.name, sessionId, options));
  }

  /**
   * A new session that goes on from one of this session's turns: its messages, except those that were undone, its state and
   * what the plan knows are as after that turn. Owner, workspace and metadata are those of this session; surfaces it has none.
   * @returns the new session
   * @throws SessionNotFoundError, CheckpointNotFoundError, CheckpointPrunedError; SessionConflictError when the session
   * `newSessionId` is somebody else's, SessionNotEmptyError when it is in use; otherwise as `execute`
   */
  fork(sessionId: string, options: ForkOptions = {}): Promise<Session> {
    return handOut('handle.fork', async () => this.find().timeTravel.fork(this.name, sessionId, options));
  }

  /**
   * This orchestrator as a tool for the model of another one: each call is a turn in a session that belongs to the caller's,
   * whatever the model's arguments say (BOT-50). A retried turn gets the turns that its calls made before; cancelling it
   * cancels them. Each call is a use of a tool of the calling turn, which its plan must allow. Give it to the AI SDK's `generateText({ tools: { [tool.name]: tool } })` as it is, or call its `execute`.
   * @param turn the one that calls. It holds no slot of `turns.concurrency` while it waits
   * @throws InvalidInputError for the options
   */
  asTool(turn: OrchestratorToolCaller, options?: OrchestratorToolOptions): OrchestratorTool {
    return orchestratorTool(this.name, this.find, turn, options);
  }

  /**
   * Compacts a session's conversation now, by this orchestrator's policy (BOT-45).
   * @throws InvalidInputError without a policy; SessionNotFoundError, CompactionBusyError, CompactionFailedError
   */
  command(name: 'compact', args: ConversationCommandArgs): Promise<CompactionResult>;
  /**
   * Takes the latest compaction of a session's conversation back (BOT-43).
   * @returns up to which position messages are behind a summary now, 0: none; `null` when there is nothing to take back
   * @throws SessionNotFoundError, CompactionBusyError
   */
  command(name: 'restore', args: ConversationCommandArgs): Promise<{ readonly through: number } | null>;
  /** @throws InvalidInputError for an unknown one, naming those that are known */
  async command(name: string, args: object = {}): Promise<unknown> {
    return this.find().commands.run(this.name, name, args);
  }

  /**
   * Calls the listener for every event of a type of this orchestrator's turns in this process (BOT-10). A constructor may call
   * it already. @returns ends it
   */
  on<Type extends OrchestratorEventType>(
    type: Type,
    listener: (event: Extract<OrchestratorEvent, { readonly type: Type }>) => unknown,
  ): () => void {
    return this.findEvents().on(type, (event) => (event.orchestrator === this.name ? listener(event) : undefined));
  }
}
