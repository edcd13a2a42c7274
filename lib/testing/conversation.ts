import { type ConversationMessage } from '../ledger/message.js';
import { type OrchestratorSubmitOptions } from '../orchestrator/orchestrator-handle.js';
import { type Session } from '../ledger/session.js';
import { type SessionStore } from '../session/session-store.service.js';
import { type SessionsAdapter } from '../ledger/sessions.adapter.js';
import { TurnFailedError, TurnWaitTimeoutError } from '../ledger/turn.errors.js';
import { type TurnInputLike } from '../turn/turn.inputs.js';
import { type TurnResult } from '../turn/turn-result.js';
import { type TurnService } from '../turn/turn.service.js';
import { type Turn } from '../ledger/turn.js';
import { TurnNeedsTimeError } from './testing.errors.js';

/** Real milliseconds after which `say` checks whether an unsettled turn waits for the clock. */
const CHECK_AFTER_MS = 2000;
const PAGE = 1000;

/** The parts of the application that conversations use. */
export interface ConversationHost {
  readonly sessions: SessionStore;
  readonly turns: TurnService;
  readonly adapter: SessionsAdapter;
  /** The test's clock; `null` if the store runs in real time. */
  readonly now: (() => number) | null;
  /** Delays moves of the clock until the submission has settled. */
  readonly hold: <T>(submission: Promise<T>) => Promise<T>;
}

/** Options of a turn in a conversation: those of `OrchestratorHandle.submit` without the session. */
export type SayOptions<State = Record<string, unknown>> = Omit<OrchestratorSubmitOptions<State>, 'sessionId'>;

/** One session of one user with one orchestrator. Created by `SessionsTestingModule.conversation`. */
export class Conversation {
  /** @hidden */
  constructor(
    private readonly host: ConversationHost,
    readonly sessionId: string,
    /** The name of the orchestrator. */
    readonly orchestrator: string,
  ) {}

  /**
   * Submits a turn to the session's lane and waits for its result, including retries.
   *
   * The result's `reply` is the reply text. To move the clock while the turn waits, await the result later:
   *
   * ```ts
   * const said = chat.say('where is order 7?'); // fails first, and is retried 30 s later
   * await app.clock.advance('30s');
   * await said;
   * ```
   * @throws the errors of `TurnService.execute`; `failure` and `cause` of a TurnFailedError are the handler's last error
   * @throws TurnNeedsTimeError after two seconds if the turn waits for the clock or for a signal
   */
  async say<State = Record<string, unknown>>(
    input: TurnInputLike,
    options: SayOptions<State> = {},
  ): Promise<TurnResult> {
    const { host, orchestrator, sessionId } = this;
    const turn = await host.hold(host.turns.submit(orchestrator, input, { ...options, sessionId }));
    for (;;) {
      try {
        return await host.turns.result(turn.id, { timeoutMs: CHECK_AFTER_MS });
      } catch (error) {
        if (!(error instanceof TurnWaitTimeoutError)) throw withCause(error);
      }
      await this.assertMoving(turn);
    }
  }

  /** Returns the stored session; `null` after it was deleted. @throws StoreUnavailableError */
  session(): Promise<Session | null> {
    return this.host.sessions.get(this.sessionId);
  }

  /** Returns all messages of the session in order; none after it was deleted. @throws StoreUnavailableError */
  messages(): Promise<ConversationMessage[]> {
    const { conversations } = this.host.adapter;
    return all((after) => conversations.page(this.sessionId, { after, limit: PAGE }));
  }

  /** Returns all turns in order, in any status; none after the session was deleted. @throws StoreUnavailableError */
  turns(): Promise<Turn[]> {
    return all((after) => this.host.turns.list({ sessionId: this.sessionId, after, limit: PAGE }));
  }

  /** @throws TurnNeedsTimeError when the head of the lane waits for a later time or for a signal */
  private async assertMoving(turn: Turn): Promise<void> {
    const { now, turns } = this.host;
    const open = { sessionId: this.sessionId, status: ['queued', 'running', 'waiting'] as Turn['status'][], limit: 1 };
    const [head] = await turns.list(open);
    if (!now || !head) return;
    const isDelayed = head.dueAt !== undefined && Date.parse(head.dueAt) > now();
    if (head.status === 'waiting' || isDelayed) throw new TurnNeedsTimeError(turn, head, now());
  }
}

/** Adds the stored name and message of the handler's error as `cause`, which test runners print. */
function withCause(error: unknown): unknown {
  if (error instanceof TurnFailedError && error.failure) {
    const { name, message } = error.failure;
    const cause = Object.assign(new Error(message), { name });
    // The handler's stack is not stored, and the stack of this function would mislead.
    cause.stack = `${name}: ${message}`;
    error.cause = cause;
  }
  return error;
}

async function all<T extends { readonly position: number }>(page: (after: number) => Promise<T[]>): Promise<T[]> {
  const items: T[] = [];
  for (;;) {
    const next = await page(items.at(-1)?.position ?? 0);
    items.push(...next);
    if (next.length < PAGE) return items;
  }
}
