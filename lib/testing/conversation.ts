import { type Message } from '../ledger/message.js';
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

/** Real milliseconds after which a turn that has not settled is looked at: does it wait for the clock? */
const LOOK_AFTER_MS = 2000;
const PAGE = 1000;

/** What conversations need of their application. */
export interface ConversationHost {
  readonly sessions: SessionStore;
  readonly turns: TurnService;
  readonly adapter: SessionsAdapter;
  /** Of the test; `null`: the store runs by the real time. */
  readonly now: (() => number) | null;
  /** The clock is not moved while this is under way. */
  readonly hold: <T>(submission: Promise<T>) => Promise<T>;
}

/** How a turn of a conversation is submitted: as with `OrchestratorHandle.submit`, the session is known. */
export type SayOptions<State = Record<string, unknown>> = Omit<OrchestratorSubmitOptions<State>, 'sessionId'>;

/** One session of one user with one orchestrator. `SessionsTestingModule.conversation` makes them. */
export class Conversation {
  /** @hidden */
  constructor(
    private readonly host: ConversationHost,
    readonly sessionId: string,
    /** Its name. */
    readonly orchestrator: string,
  ) {}

  /**
   * Says something and waits for the answer: a turn in the session's lane, with its retries.
   *
   * `reply` of the result is the text. Not awaited at once, it can be told to go on while the clock moves:
   *
   * ```ts
   * const said = chat.say('where is order 7?'); // fails at first, and is tried again 30 s later
   * await app.clock.advance('30s');
   * await said;
   * ```
   * @throws as `TurnService.execute`; a TurnFailedError has the handler's last error as `failure` and `cause`
   * @throws TurnNeedsTimeError after two seconds in which only the clock could have helped
   */
  async say<State = Record<string, unknown>>(
    input: TurnInputLike,
    options: SayOptions<State> = {},
  ): Promise<TurnResult> {
    const { host, orchestrator, sessionId } = this;
    const turn = await host.hold(host.turns.submit(orchestrator, input, { ...options, sessionId }));
    for (;;) {
      try {
        return await host.turns.result(turn.id, { timeoutMs: LOOK_AFTER_MS });
      } catch (error) {
        if (!(error instanceof TurnWaitTimeoutError)) throw withCause(error);
      }
      await this.assertMoving(turn);
    }
  }

  /** The session as it is stored; `null` once it was deleted. @throws StoreUnavailableError */
  session(): Promise<Session | null> {
    return this.host.sessions.get(this.sessionId);
  }

  /** All its messages in order; none once it was deleted. @throws StoreUnavailableError */
  messages(): Promise<Message[]> {
    const { conversations } = this.host.adapter;
    return all((after) => conversations.page(this.sessionId, { after, limit: PAGE }));
  }

  /** All its turns in order, whatever their status; none once it was deleted. @throws StoreUnavailableError */
  turns(): Promise<Turn[]> {
    return all((after) => this.host.turns.list({ sessionId: this.sessionId, after, limit: PAGE }));
  }

  /** @throws TurnNeedsTimeError when the head of the lane can only go on at a later time, or for a signal */
  private async assertMoving(turn: Turn): Promise<void> {
    const { now, turns } = this.host;
    const open = { sessionId: this.sessionId, status: ['queued', 'running', 'waiting'] as Turn['status'][], limit: 1 };
    const [head] = await turns.list(open);
    if (!now || !head) return;
    const isPutOff = head.dueAt !== undefined && Date.parse(head.dueAt) > now();
    if (head.status === 'waiting' || isPutOff) throw new TurnNeedsTimeError(turn, head, now());
  }
}

/** A failed turn keeps its error's name and message; test runners print an error's cause. */
function withCause(error: unknown): unknown {
  if (error instanceof TurnFailedError && error.failure) {
    const { name, message } = error.failure;
    const cause = Object.assign(new Error(message), { name });
    // That of the handler is not stored, and this one's own would mislead.
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
