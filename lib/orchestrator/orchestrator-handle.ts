import { type JsonValue } from '../common/json.js';
import { type Patch } from '../common/patch.js';
import { type CompactionResult } from '../conversation/compaction-run.js';
import { type Session } from '../ledger/session.js';
import { type EmittedEvent, type NewTurnEvent, type TurnEvent } from '../ledger/turn-event.js';
import { type Turn } from '../ledger/turn.js';
import { handOut } from '../turn/running-turn.js';
import { type TurnResult } from '../turn/turn-result.js';
import { type TurnStreamEvent } from '../turn/turn-stream-event.js';
import { type TurnStream } from '../turn/turn-stream.js';
import { type SubmitOptions, type TurnInputLike, type WaitOptions } from '../turn/turn.inputs.js';
import { type OrchestratorEvent, type OrchestratorEvents, type OrchestratorEventType } from './orchestrator-events.js';
import { type OrchestratorPlace } from './orchestrator-place.js';
import {
  orchestratorTool,
  type OrchestratorTool,
  type OrchestratorToolCaller,
  type OrchestratorToolOptions,
} from './orchestrator-tool.js';
import { type ForkOptions, type HistoryQuery, type UndoOptions } from './time-travel.inputs.js';
import { type HistoryEntry } from './time-travel.js';

/** Options of `handle.submit`. The `State` parameter only types the patch of the state. */
export interface OrchestratorSubmitOptions<State> extends Omit<SubmitOptions, 'state' | 'onEvent'> {
  /** Merged into the state before dispatch, by top-level keys. Default: no change. */
  readonly state?: Patch<State>;
  /** Called for each event of the turn while it runs in this process; errors are logged. Default: none. */
  readonly onEvent?: (event: OrchestratorEvent) => unknown;
}

export interface OrchestratorExecuteOptions<State> extends OrchestratorSubmitOptions<State> {
  /** Milliseconds after which the caller stops waiting; the turn continues. Default: no limit. */
  readonly timeoutMs?: number;
}

/** The arguments of a conversation command. */
export interface ConversationCommandArgs {
  readonly sessionId: string;
}

/** `TurnEvent` unless the handle's type lists the events of the handlers. */
type StreamedEvent<Emitted extends EmittedEvent> = NewTurnEvent extends Emitted ? TurnEvent : TurnStreamEvent<Emitted>;

/**
 * The handle of one orchestrator, injected by `@InjectOrchestrator` (BOT-01). The compiler cannot check the type arguments
 * against the orchestrator; `DataOf` derives `Data` from its class.
 * @typeParam State the state of the orchestrator
 * @typeParam Data the type of `result.data`: `DataOf<typeof SupportDesk>`, or a type of your own (DAY-05)
 * @typeParam Emitted the events that the handlers emit, a union such as `{ type: 'delta'; data: { text: string } }`
 */
export class OrchestratorHandle<
  State = Record<string, unknown>,
  Data = JsonValue,
  Emitted extends EmittedEvent = NewTurnEvent,
> {
  /** @hidden */
  constructor(
    readonly name: string,
    private readonly find: () => OrchestratorPlace,
    private readonly findEvents: () => OrchestratorEvents,
  ) {}

  /** The version of the definition that this process runs. */
  get version(): string {
    return this.find().definition.version;
  }

  /** SHA-256 of the orchestrator's structure; available once the application has started. */
  get signature(): string {
    return this.find().definition.signature;
  }

  /** Runs a turn and waits for its result. @throws as `TurnService.execute`, and OrchestratorDriftError */
  execute(input: TurnInputLike, options: OrchestratorExecuteOptions<State>): Promise<TurnResult<Data>> {
    const result: Promise<unknown> = handOut('handle.execute', async () =>
      this.find().turns.execute(this.name, input, options),
    );
    return result as Promise<TurnResult<Data>>;
  }

  /** Accepts a turn and returns without waiting for it. @throws as `TurnService.submit` */
  submit(input: TurnInputLike, options: OrchestratorSubmitOptions<State>): Promise<Turn> {
    return handOut('handle.submit', async () => this.find().turns.submit(this.name, input, options));
  }

  /**
   * Runs a turn and streams it. `for await` yields the events that its handler emits, then `settled`. `result` resolves
   * as `execute` does, and rejects with the errors of the turn; `stream` itself does not throw them.
   */
  stream(input: TurnInputLike, options: OrchestratorSubmitOptions<State>): TurnStream<Data, StreamedEvent<Emitted>> {
    const stream: unknown = this.find().turns.stream(this.name, input, options);
    return stream as TurnStream<Data, StreamedEvent<Emitted>>;
  }

  /**
   * Resumes the interrupted turn with its input, history and stored steps, and waits for its result. It starts at once
   * instead of when the module would resume it automatically. If a live worker runs the turn, `resume` only waits for
   * it. If the module was faster, the result is the same, until the next turn ends (FIX-14). A turn that has not begun
   * is not resumed: workers start it in its order.
   * @returns `null` if no turn was interrupted. Either no turn of this orchestrator has begun and is open, and its
   * latest turn, among the last 20 that ended in the session, lost no worker, or the open turn waits for a signal
   * @throws as `execute`
   */
  resume(sessionId: string, options?: WaitOptions): Promise<TurnResult<Data> | null> {
    const result: Promise<unknown> = handOut('handle.resume', async () =>
      this.find().turns.resume(this.name, sessionId, options),
    );
    return result as Promise<TurnResult<Data> | null>;
  }

  /** Lists the session's checkpoints of this orchestrator, the latest first (BOT-25). @throws InvalidInputError */
  history(sessionId: string, query: HistoryQuery = {}): Promise<HistoryEntry<State>[]> {
    const found: Promise<unknown> = handOut('handle.history', async () =>
      this.find().timeTravel.history(this.name, sessionId, query),
    );
    return found as Promise<HistoryEntry<State>[]>;
  }

  /**
   * Undoes the last turn. Call it again to undo the turn before, back to the initial state. The undo is itself a turn,
   * which waits for earlier turns in the lane. It restores the state and the plan's progress from before the undone
   * turn, except for token counts. The log keeps the messages of the undone turn, but later turns of this orchestrator
   * do not see them.
   * @throws NothingToUndoError; CheckpointNotFoundError when `keepCheckpoints` has already removed the checkpoint;
   * otherwise as `execute`
   */
  undo(
    sessionId: string,
    options: UndoOptions = {},
  ): Promise<{
    readonly sessionId: string;
    /** The index of the checkpoint that the undo wrote. */
    readonly turnIndex: number;
    /** The id of the turn that was undone. */
    readonly undone: string;
  }> {
    return handOut('handle.undo', async () => this.find().timeTravel.undo(this.name, sessionId, options));
  }

  /**
   * Creates a session that continues from one of this session's turns. Its messages, except undone ones, its state and
   * its plan progress are those after that turn. Owner, workspace and metadata are copied from this session; it has no
   * surfaces.
   * @returns the new session
   * @throws SessionNotFoundError, CheckpointNotFoundError; SessionConflictError when another user owns the
   * session `newSessionId`, or when it is in use (`SESSION_NOT_EMPTY`); otherwise as `execute`
   */
  fork(sessionId: string, options: ForkOptions = {}): Promise<Session> {
    return handOut('handle.fork', async () => this.find().timeTravel.fork(this.name, sessionId, options));
  }

  /**
   * Returns this orchestrator as a tool for the model of another one. Each call runs a turn in a session that belongs
   * to the caller's session, whatever the model's arguments are (BOT-50). A retried turn reuses the turns of its
   * earlier calls; cancelling it cancels them. Each call counts as a tool use of the calling turn, and its plan must
   * allow it. Pass the tool to the AI SDK's `generateText({ tools: { [tool.name]: tool } })`, or call its `execute`.
   * @param turn the calling turn. It does not hold a slot of `turns.concurrency` while it waits
   * @throws InvalidInputError for the options
   */
  asTool(turn: OrchestratorToolCaller, options?: OrchestratorToolOptions): OrchestratorTool {
    return orchestratorTool(this.name, this.find, turn, options);
  }

  /**
   * Compacts a session's conversation now, with this orchestrator's policy (BOT-45).
   * @throws InvalidInputError without a policy; SessionNotFoundError, CompactionError
   */
  command(name: 'compact', args: ConversationCommandArgs): Promise<CompactionResult>;
  /**
   * Reverts the latest compaction of a session's conversation (BOT-43).
   * @returns the position up to which messages are now replaced by a summary, 0 for none; `null` if there is nothing to
   * revert
   * @throws SessionNotFoundError, CompactionError (`COMPACTION_BUSY`)
   */
  command(name: 'restore', args: ConversationCommandArgs): Promise<{ readonly through: number } | null>;
  /** @throws InvalidInputError for an unknown command, listing the known ones */
  command(name: string, args: object = {}): Promise<unknown> {
    return handOut('handle.command', async () => this.find().commands.run(this.name, name, args));
  }

  /**
   * Calls the listener for each event of a type, of this orchestrator's turns in this process (BOT-10). It can be
   * called in a constructor. @returns a function that removes the listener
   */
  on<Type extends OrchestratorEventType>(
    type: Type,
    listener: (event: Extract<OrchestratorEvent, { readonly type: Type }>) => unknown,
  ): () => void {
    return this.findEvents().on(type, (event) => (event.orchestrator === this.name ? listener(event) : undefined));
  }
}
