import { type ServerResponse } from 'node:http';
import { Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { type Observable } from 'rxjs';
import { InvalidInputError, SessionsError } from '../../common/sessions.error.js';
import { type Session } from '../../ledger/session.js';
import { type TurnEventMessage } from '../../ledger/turn-event.js';
import { IdempotencyConflictError, SessionBusyError, TurnNotFoundError } from '../../ledger/turn.errors.js';
import { type Turn, type TurnInput, type WhenBusy } from '../../ledger/turn.js';
import { type Transcript } from '../../orchestrator/transcript.js';
import { type SessionStore } from '../../session/session-store.service.js';
import { toTurnEnd } from '../../turn/to-turn-result.js';
import { assertRegistered, type TurnRunner } from '../../turn/turn-runner.js';
import { type SubmitOptions } from '../../turn/turn.inputs.js';
import { type TurnService } from '../../turn/turn.service.js';
import { orchestratorOf, touchAccepted } from '../controllers/client-turn.js';
import { StreamSlots } from '../controllers/stream-slots.js';
import { type ConversationPage, conversationTurns } from './conversation-view.js';
import { toTurnView, type TurnView } from './turn-view.js';
import { type ConversationQuery, type ListTurnsQuery, type SubmitTurnBody, toClientInput } from './turns.inputs.js';

const DEFAULT_LIMIT = 50;

/** A page of turns, in the order of their lane. */
export interface TurnList {
  readonly turns: readonly TurnView[];
  /** The value of `after` for the next page; absent on the last page. */
  readonly nextAfter?: number;
}

/** The permissions of clients. */
interface Allowed {
  /** Names of the orchestrators that clients may use. */
  readonly orchestrators: readonly string[];
  /** The policies that clients may choose. */
  readonly whenBusy: readonly WhenBusy[];
  readonly maxStreamsPerPrincipal: number;
}

/**
 * Creates and returns the turns of a session on behalf of its owner: only turns of orchestrators that clients may use.
 */
export class ClientTurns implements OnApplicationBootstrap {
  private readonly logger = new Logger(ClientTurns.name);
  private readonly slots: StreamSlots;

  constructor(
    private readonly turns: TurnService,
    private readonly runner: TurnRunner,
    private readonly sessions: SessionStore,
    private readonly transcript: Transcript,
    private readonly allowed: Allowed,
  ) {
    this.slots = new StreamSlots(allowed.maxStreamsPerPrincipal);
  }

  /** @throws SessionsConfigurationError for an unknown orchestrator */
  onApplicationBootstrap(): void {
    assertRegistered('controllers.turns.orchestrators', this.allowed.orchestrators, this.runner);
  }

  /** @throws as `TurnService.submit`; errors do not reveal hidden turns */
  async submit(session: Session, body: SubmitTurnBody, idempotencyKey?: string): Promise<TurnView> {
    const { whenBusy } = body;
    const orchestrator = orchestratorOf(this.allowed.orchestrators, body.orchestrator);
    this.assertAllowed(whenBusy);
    // The service checks its size.
    const input = toClientInput(body);
    const turn = await this.accept(orchestrator, input, {
      sessionId: session.id,
      session,
      ...(whenBusy === undefined ? {} : { whenBusy }),
      ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    });
    // A rejected request does not count as activity.
    await touchAccepted(this.sessions, session, this.logger);
    return this.viewOf(turn);
  }

  async list(sessionId: string, { limit = DEFAULT_LIMIT, ...query }: ListTurnsQuery): Promise<TurnList> {
    // Fetch one more to know whether another page follows.
    const found = await this.turns.list({ ...query, sessionId, limit: limit + 1 });
    const page = found.slice(0, limit);
    return {
      turns: page.filter((turn) => this.isShown(turn)).map((turn) => this.viewOf(turn)),
      ...(found.length > limit ? { nextAfter: page[limit - 1].position } : {}),
    };
  }

  /**
   * Returns a page of the conversation as its user sees it (DAY-21).
   * @throws InvalidInputError for an invalid cursor
   */
  async conversation(sessionId: string, query: ConversationQuery): Promise<ConversationPage> {
    const { orchestrators } = this.allowed;
    const { turns, before } = await this.transcript.page({ ...query, sessionId, orchestrators });
    return {
      turns: conversationTurns(turns, (turn) => this.viewOf(turn)),
      ...(before === undefined ? {} : { before }),
    };
  }

  /** @throws TurnNotFoundError also for a turn of another session or orchestrator */
  async get(sessionId: string, turnId: string): Promise<TurnView> {
    return this.viewOf(await this.find(sessionId, turnId));
  }

  /** @returns the turn after the request; a running turn settles later */
  async cancel(sessionId: string, turnId: string): Promise<TurnView> {
    await this.find(sessionId, turnId);
    return this.viewOf(await this.turns.cancel(turnId));
  }

  /**
   * @param after the client's Last-Event-ID
   * @throws ProcessLimitError (`TOO_MANY_STREAMS`); as `get`
   */
  async events(
    session: Session,
    turnId: string,
    { after, response }: { readonly after?: string; readonly response: ServerResponse },
  ): Promise<Observable<TurnEventMessage>> {
    this.slots.take(session, response);
    await this.find(session.id, turnId);
    return this.turns.events(turnId, { after, response });
  }

  private async accept(orchestrator: string, input: TurnInput, options: SubmitOptions): Promise<Turn> {
    try {
      return await this.turns.submit(orchestrator, input, options);
    } catch (error) {
      if (!(SessionBusyError.isInstance(error) || IdempotencyConflictError.isInstance(error))) throw error;
      const turn = await this.turns.get(error.turnId);
      throw turn && this.isShown(turn) ? error : new HiddenTurnError(error);
    }
  }

  private async find(sessionId: string, turnId: string): Promise<Turn> {
    const turn = await this.turns.get(turnId);
    if (turn?.sessionId !== sessionId || !this.isShown(turn)) throw new TurnNotFoundError(turnId);
    return turn;
  }

  private isShown({ orchestrator }: Turn): boolean {
    return this.allowed.orchestrators.includes(orchestrator);
  }

  private assertAllowed(whenBusy: WhenBusy | undefined): void {
    const policies = this.allowed.whenBusy;
    if (whenBusy === undefined || policies.includes(whenBusy)) return;
    throw new InvalidInputError(
      'body.whenBusy',
      policies.length === 0 ? 'must not be set for this controller.' : `must be one of ${policies.join(', ')}.`,
    );
  }

  private viewOf(turn: Turn): TurnView {
    return toTurnView(turn, (ended) => toTurnEnd(ended, (failed) => this.runner.readFailure(failed)));
  }
}

type TurnConflict = SessionBusyError | IdempotencyConflictError;

const MESSAGES: Readonly<Record<TurnConflict['code'], string>> = {
  SESSION_BUSY: 'The session is busy. Retry later.',
  IDEMPOTENCY_CONFLICT:
    'The idempotency key was already used for a different message. Use a new key for a new message.',
};

/** A conflict with a turn that clients must not see. Omits the turn. */
export class HiddenTurnError extends SessionsError {
  readonly code: TurnConflict['code'];
  readonly sessionId: string;

  constructor({ code, sessionId }: TurnConflict) {
    super(MESSAGES[code]);
    this.code = code;
    this.sessionId = sessionId;
  }
}
