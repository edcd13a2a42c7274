import { type OnApplicationBootstrap } from '@nestjs/common';
import { type Observable } from 'rxjs';
import { InvalidInputError, SessionsConfigurationError } from '../../common/sessions.error.js';
import { type SessionStore } from '../../session/session-store.service.js';
import { type TurnEventMessage } from '../../turn/turn-event.js';
import { toTurnInput } from '../../turn/turn.inputs.js';
import { TurnNotFoundError } from '../../turn/turn.errors.js';
import { type TurnRunner } from '../../turn/turn-runner.js';
import { type TurnService } from '../../turn/turn.service.js';
import { type Turn } from '../../turn/turn.js';
import { toTurnView, type TurnView } from './turn-view.js';
import { type ListTurnsQuery, type SubmitTurnBody } from './turns.inputs.js';

const DEFAULT_LIMIT = 50;

/** Turns of a page, in the order of their lane. */
export interface TurnList {
  readonly turns: readonly TurnView[];
  /** Give it as `after` for the next page; absent on the last one. */
  readonly nextAfter?: number;
}

/** The turns of a session as its owner may make and see them: only those of the orchestrators that clients may speak to. */
export class ClientTurns implements OnApplicationBootstrap {
  constructor(
    private readonly turns: TurnService,
    private readonly runner: TurnRunner,
    private readonly sessions: SessionStore,
    private readonly orchestrators: readonly string[],
  ) {}

  /** @throws SessionsConfigurationError for an orchestrator that there is not */
  onApplicationBootstrap(): void {
    const unknown = this.orchestrators.find((name) => !this.runner.find(name));
    if (unknown === undefined) return;
    throw new SessionsConfigurationError(
      `SessionsModule: The option controllers.turns.orchestrators lists ${JSON.stringify(unknown)}, and no orchestrator of that ` +
        'name is registered. Register it with SessionsModule.forFeature([...]).',
    );
  }

  /** @throws as `TurnService.submit` */
  async submit(sessionId: string, body: SubmitTurnBody, idempotencyKey?: string): Promise<TurnView> {
    const { text, content, metadata, whenBusy } = body;
    const orchestrator = this.orchestratorOf(body);
    // The service checks its size.
    const input = toTurnInput({ text, content, metadata }, Infinity, 'body');
    const turn = await this.turns.submit(orchestrator, input, {
      sessionId,
      ...(whenBusy === undefined ? {} : { whenBusy }),
      ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    });
    // What is refused is no activity.
    await this.sessions.touch(sessionId);
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

  /** @param after the client's Last-Event-ID */
  async events(sessionId: string, turnId: string, after?: string): Promise<Observable<TurnEventMessage>> {
    await this.find(sessionId, turnId);
    return this.turns.events(turnId, { after });
  }

  private async find(sessionId: string, turnId: string): Promise<Turn> {
    const turn = await this.turns.get(turnId);
    if (turn?.sessionId !== sessionId || !this.isShown(turn)) throw new TurnNotFoundError(turnId);
    return turn;
  }

  private isShown({ orchestrator }: Turn): boolean {
    return this.orchestrators.includes(orchestrator);
  }

  /** One that is not for clients and one that there is not are the same to who asks. */
  private orchestratorOf({ orchestrator }: SubmitTurnBody): string {
    if (orchestrator === undefined) {
      if (this.orchestrators.length === 1) return this.orchestrators[0];
      throw new InvalidInputError('body.orchestrator', 'must be given: there are several.');
    }
    if (this.orchestrators.includes(orchestrator)) return orchestrator;
    throw new InvalidInputError('body.orchestrator', 'must be the name of an orchestrator that takes turns here.');
  }

  private viewOf(turn: Turn): TurnView {
    return toTurnView(turn, (failed) => this.runner.readFailure(failed));
  }
}
