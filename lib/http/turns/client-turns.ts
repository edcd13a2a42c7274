import { type ServerResponse } from 'node:http';
import { Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { type Observable } from 'rxjs';
import { traceOf } from '../../common/error-trace.js';
import { hashed } from '../../common/log-id.js';
import { InvalidInputError, SessionsConfigurationError } from '../../common/sessions.error.js';
import { type Session } from '../../ledger/session.js';
import { type SessionStore } from '../../session/session-store.service.js';
import { type TurnEventMessage } from '../../ledger/turn-event.js';
import { type SubmitOptions, toTurnInput } from '../../turn/turn.inputs.js';
import { IdempotencyConflictError, SessionBusyError, TurnNotFoundError } from '../../ledger/turn.errors.js';
import { type TurnRunner } from '../../turn/turn-runner.js';
import { type TurnService } from '../../turn/turn.service.js';
import { type Turn, type TurnInput, type WhenBusy } from '../../ledger/turn.js';
import { HiddenTurnError } from './hidden-turn.error.js';
import { StreamSlots } from './stream-slots.js';
import { toTurnView, type TurnView } from './turn-view.js';
import { type ListTurnsQuery, type SubmitTurnBody } from './turns.inputs.js';

const DEFAULT_LIMIT = 50;

/** Turns of a page, in the order of their lane. */
export interface TurnList {
  readonly turns: readonly TurnView[];
  /** Give it as `after` for the next page; absent on the last one. */
  readonly nextAfter?: number;
}

/** What clients may do. */
interface Allowed {
  /** By name: those that they may speak to. */
  readonly orchestrators: readonly string[];
  /** The policies that they may name. */
  readonly whenBusy: readonly WhenBusy[];
  readonly maxStreamsPerPrincipal: number;
}

/** The turns of a session as its owner may make and see them: only those of the orchestrators that clients may speak to. */
export class ClientTurns implements OnApplicationBootstrap {
  private readonly logger = new Logger(ClientTurns.name);
  private readonly slots: StreamSlots;

  constructor(
    private readonly turns: TurnService,
    private readonly runner: TurnRunner,
    private readonly sessions: SessionStore,
    private readonly allowed: Allowed,
  ) {
    this.slots = new StreamSlots(allowed.maxStreamsPerPrincipal);
  }

  /** @throws SessionsConfigurationError for an orchestrator that there is not */
  onApplicationBootstrap(): void {
    const unknown = this.allowed.orchestrators.find((name) => !this.runner.find(name));
    if (unknown === undefined) return;
    throw new SessionsConfigurationError(
      `SessionsModule: The option controllers.turns.orchestrators lists ${JSON.stringify(unknown)}, and no orchestrator of that ` +
        'name is registered. Register it with SessionsModule.forFeature([...]).',
    );
  }

  /** @throws as `TurnService.submit`; of a turn that is not shown nothing is said */
  async submit(sessionId: string, body: SubmitTurnBody, idempotencyKey?: string): Promise<TurnView> {
    const { text, content, metadata, whenBusy } = body;
    const orchestrator = this.orchestratorOf(body);
    this.assertAllowed(whenBusy);
    // The service checks its size.
    const input = toTurnInput({ text, content, metadata }, Infinity, 'body');
    const turn = await this.accept(orchestrator, input, {
      sessionId,
      ...(whenBusy === undefined ? {} : { whenBusy }),
      ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    });
    // What is refused is no activity.
    await this.touch(sessionId);
    return this.viewOf(turn);
  }

  async list(sessionId: string, { limit = DEFAULT_LIMIT, ...query }: ListTurnsQuery): Promise<TurnList> {
    // One more than the page tells whether another page follows.
    const found = await this.turns.list({ ...query, sessionId, limit: limit + 1 });
    const page = found.slice(0, limit);
    return {
      turns: page.filter((turn) => this.isShown(turn)).map((turn) => this.viewOf(turn)),
      ...(found.length > limit ? { nextAfter: page[limit - 1].position } : {}),
    };
  }

  /** @throws TurnNotFoundError for one of another session or orchestrator, as for an unknown one */
  async get(sessionId: string, turnId: string): Promise<TurnView> {
    return this.viewOf(await this.find(sessionId, turnId));
  }

  /** @returns the turn as it stands now: one that runs settles soon */
  async cancel(sessionId: string, turnId: string): Promise<TurnView> {
    await this.find(sessionId, turnId);
    return this.viewOf(await this.turns.cancel(turnId));
  }

  /**
   * @param after the client's Last-Event-ID
   * @throws TooManyStreamsError; as `get`
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
      if (!(error instanceof SessionBusyError || error instanceof IdempotencyConflictError)) throw error;
      const turn = await this.turns.get(error.turnId);
      throw turn && this.isShown(turn) ? error : new HiddenTurnError(error);
    }
  }

  /** Best effort: the turn is accepted, whatever becomes of this. */
  private async touch(sessionId: string): Promise<void> {
    try {
      await this.sessions.touch(sessionId);
    } catch (error) {
      this.logger.warn(`Could not touch session ${hashed(sessionId)} after its turn was accepted.`, traceOf(error));
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

  /** One that is not for clients and one that there is not are the same to who asks. */
  private orchestratorOf({ orchestrator }: SubmitTurnBody): string {
    if (orchestrator === undefined) {
      if (this.allowed.orchestrators.length === 1) return this.allowed.orchestrators[0];
      throw new InvalidInputError('body.orchestrator', 'must be given: there are several.');
    }
    if (this.allowed.orchestrators.includes(orchestrator)) return orchestrator;
    throw new InvalidInputError('body.orchestrator', 'must be the name of an orchestrator that takes turns here.');
  }

  private assertAllowed(whenBusy: WhenBusy | undefined): void {
    const policies = this.allowed.whenBusy;
    if (whenBusy === undefined || policies.includes(whenBusy)) return;
    throw new InvalidInputError(
      'body.whenBusy',
      policies.length === 0 ? 'must be left out here.' : `must be one of ${policies.join(', ')}.`,
    );
  }

  private viewOf(turn: Turn): TurnView {
    return toTurnView(turn, (failed) => this.runner.readFailure(failed));
  }
}
