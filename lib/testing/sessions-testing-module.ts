import { type INestApplication, type InjectionToken } from '@nestjs/common';
import { type TestingModule } from '@nestjs/testing';
import { loadPeer } from '../common/load-peer.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { SessionSweeper } from '../maintenance/session-sweeper.service.js';
import { OrchestratorRegistry } from '../orchestrator/orchestrator.registry.js';
import { SessionStore } from '../session/session-store.service.js';
import { type SessionsAdapter } from '../ledger/sessions.adapter.js';
import { SessionsModule } from '../module/sessions.module.js';
import { type SessionsSettings } from '../module/sessions.settings.js';
import { SESSIONS_ADAPTER, SESSIONS_SETTINGS } from '../common/sessions.tokens.js';
import { LaneReconciler } from '../turn/lane-reconciler.service.js';
import { TurnService } from '../turn/turn.service.js';
import { type Conversation } from './conversation.js';
import { type ConversationOptions, openConversation } from './open-conversation.js';
import { StandInRegistry } from './stand-in-registry.js';
import { type TestClock } from './test-clock.js';
import { resolveTestingOptions, type SessionsTestingOptions, type TestingSettings } from './testing-options.js';
import { testingMessages } from './testing.messages.js';

/**
 * A Nest application for tests, with its own clock (NST-26):
 *
 * ```ts
 * const app = await SessionsTestingModule.create({ orchestrators: [SupportDesk], providers: [OrdersService] });
 * const chat = await app.conversation({ userId: 'ann' });
 * expect(await chat.say('where is order 7?')).toMatchObject({ reply: 'Order 7 is shipped.' });
 * await app.clock.advance('2h');
 * await app.sweep();
 * await app.close();
 * ```
 */
export class SessionsTestingModule implements AsyncDisposable {
  private readonly submissions = new Set<Promise<unknown>>();
  private readonly unfollow: (() => void) | undefined;
  private closing: Promise<void> | undefined;

  private constructor(
    /** The Nest testing module, for `resolve`, `select` and other calls. */
    readonly module: TestingModule,
    private readonly application: INestApplication | null,
    private readonly time: TestingSettings['time'],
  ) {
    this.unfollow = time?.clock.follow({ nextDue: () => time.queue.nextNotification(), rest: () => this.rest() });
  }

  /**
   * Starts an application. By default it has its own memory store, and only `sweep()` sweeps sessions.
   * @throws SessionsConfigurationError for invalid options, for `imports` with another `SessionsModule.forRoot()`,
   * and if `@nestjs/testing` is missing; the message then has the install command
   */
  static async create(options: SessionsTestingOptions = {}): Promise<SessionsTestingModule> {
    const { Test } = await loadPeer('@nestjs/testing', () => import('@nestjs/testing'));
    const { imports = [], controllers = [], providers = [], orchestrators = [], http, override, ...rest } = options;
    const { root, time } = resolveTestingOptions(rest);
    const builder = Test.createTestingModule({
      imports: [SessionsModule.forRoot(root), SessionsModule.forFeature(orchestrators), ...imports],
      controllers,
      providers,
    });
    builder.overrideProvider(OrchestratorRegistry).useFactory({
      inject: [SESSIONS_SETTINGS],
      factory: ({ state }: SessionsSettings) => new StandInRegistry(orchestrators, state.modules),
    });
    override?.(builder);

    const module = await builder.compile();
    try {
      const application = typeof http === 'function' ? http(module) : http ? module.createNestApplication() : null;
      await (application ?? module).init();
      // Fastify accepts requests only after ready().
      await (application?.getHttpAdapter().getInstance() as Partial<Ready> | undefined)?.ready?.();
      return new SessionsTestingModule(module, application, time);
    } catch (error) {
      await module.close().catch(() => undefined);
      throw error;
    }
  }

  /**
   * The clock that the store reads. It only moves when the test moves it.
   * @throws SessionsConfigurationError if `create` received an `adapter` without the `clock` that it reads
   */
  get clock(): TestClock {
    if (this.time) return this.time.clock;
    throw new SessionsConfigurationError(testingMessages.adapterWithoutClock());
  }

  /**
   * The Nest application, ready for requests: `request(app.http.getHttpServer())`.
   * @throws SessionsConfigurationError if the `http` option was not set
   */
  get http(): INestApplication {
    if (this.application) return this.application;
    throw new SessionsConfigurationError(testingMessages.noHttp());
  }

  /** Returns a provider of any module. @throws Nest's UnknownElementException if it does not exist */
  get<T>(token: InjectionToken<T>): T {
    return this.module.get<T>(token, { strict: false });
  }

  /**
   * Starts a conversation in a new session, or continues the session with `sessionId`.
   * @throws InvalidInputError if several orchestrators exist and none is named, or for an invalid session;
   * SessionsConfigurationError (`UNKNOWN_ORCHESTRATOR`); SessionNotFoundError for an unknown `sessionId`; the errors of `SessionStore.create`
   */
  async conversation(options: ConversationOptions): Promise<Conversation> {
    return openConversation(
      {
        registry: this.get(OrchestratorRegistry),
        sessions: this.get(SessionStore),
        turns: this.get(TurnService),
        adapter: this.get<SessionsAdapter>(SESSIONS_ADAPTER),
        now: this.time ? this.time.clock.now : null,
        hold: (submission) => this.hold(submission),
      },
      options,
    );
  }

  /**
   * Runs the sweep at the clock's time: suspends idle sessions, and expires and deletes sessions as the `sweep`
   * option says. Does nothing while another application sweeps the same store. @throws the errors of the store
   */
  async sweep(): Promise<void> {
    await this.get(SessionSweeper).sweep();
  }

  /** Closes the application and stops running turns. Further calls have no effect. */
  async close(): Promise<void> {
    this.unfollow?.();
    this.closing ??= (this.application ?? this.module).close();
    await this.closing;
  }

  /** Closes the application at the end of `await using`, like {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  private async hold<T>(submission: Promise<T>): Promise<T> {
    this.submissions.add(submission);
    return submission.finally(() => this.submissions.delete(submission));
  }

  /** Resolves when every due turn has been picked up. */
  private async rest(): Promise<void> {
    do {
      await Promise.allSettled(this.submissions);
      await this.time?.queue.rest();
    } while ((await this.get(LaneReconciler).notifyDue()) > 0);
  }
}

/** A server with a `ready` method, such as Fastify. */
interface Ready {
  ready(): PromiseLike<unknown>;
}
