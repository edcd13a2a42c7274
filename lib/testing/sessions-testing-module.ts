import { type INestApplication, type InjectionToken } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
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

/**
 * An application for tests, on a clock of its own (NST-26):
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
    /** Of Nest: for `resolve`, `select`, and whatever else tests need. */
    readonly module: TestingModule,
    private readonly application: INestApplication | null,
    private readonly time: TestingSettings['time'],
  ) {
    this.unfollow = time?.clock.follow({ nextDue: () => time.queue.nextRing(), rest: () => this.rest() });
  }

  /**
   * Starts an application. Without more it has a memory store of its own, and nothing is swept unless by `sweep()`.
   * @throws SessionsConfigurationError for wrong options, for `imports` that have a `SessionsModule.forRoot()`
   * themselves, and with the command that installs it when `@nestjs/testing` is missing
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
      assertOneRoot(module);
      const application = typeof http === 'function' ? http(module) : http ? module.createNestApplication() : null;
      await (application ?? module).init();
      // Fastify takes no requests before.
      await (application?.getHttpAdapter().getInstance() as Partial<Ready> | undefined)?.ready?.();
      return new SessionsTestingModule(module, application, time);
    } catch (error) {
      await module.close().catch(() => undefined);
      throw error;
    }
  }

  /**
   * The clock that the store reads. It stands still until it is told to move.
   * @throws SessionsConfigurationError when an `adapter` was given without the `clock` that it reads
   */
  get clock(): TestClock {
    if (this.time) return this.time.clock;
    throw new SessionsConfigurationError(
      'The adapter was given without a clock. Give both: ' +
        'SessionsTestingModule.create({ clock, adapter: memoryAdapter({ clock: clock.now }) }).',
    );
  }

  /**
   * The Nest application, ready for requests: `request(app.http.getHttpServer())`.
   * @throws SessionsConfigurationError unless `http` was asked for
   */
  get http(): INestApplication {
    if (this.application) return this.application;
    throw new SessionsConfigurationError(
      'There is no HTTP application. Ask for it: SessionsTestingModule.create({ http: true }), or with a function of ' +
        'the module: http: (module) => module.createNestApplication().useGlobalPipes(...).',
    );
  }

  /** A provider of any module. @throws Nest's UnknownElementException when there is none */
  get<T>(token: InjectionToken<T>): T {
    return this.module.get<T>(token, { strict: false });
  }

  /**
   * A conversation in a new session, or in the one with `sessionId`.
   * @throws InvalidInputError when it does not say which of several orchestrators, or for a bad session;
   * UnknownOrchestratorError; SessionNotFoundError for an unknown `sessionId`; as `SessionStore.create`
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
   * All that a run of the sweep does, by the clock's time: suspends idle sessions, expires and deletes others as `sweep`
   * in the options says. Without effect while another application on the store is at it. @throws what the store throws
   */
  async sweep(): Promise<void> {
    await this.get(SessionSweeper).sweep();
  }

  /** Stops everything and lets go of it; turns that still run are stopped. Again: without effect. */
  async close(): Promise<void> {
    this.unfollow?.();
    this.closing ??= (this.application ?? this.module).close();
    await this.closing;
  }

  /** For `await using`: as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  private async hold<T>(submission: Promise<T>): Promise<T> {
    this.submissions.add(submission);
    return submission.finally(() => this.submissions.delete(submission));
  }

  /** Until nothing is due that nobody runs. */
  private async rest(): Promise<void> {
    do {
      await Promise.allSettled(this.submissions);
      await this.time?.queue.rest();
    } while ((await this.get(LaneReconciler).ringDue()) > 0);
  }
}

/** A server that says when it is ready. */
interface Ready {
  ready(): PromiseLike<unknown>;
}

function assertOneRoot(module: TestingModule): void {
  const roots = [...module.get(ModulesContainer).values()].filter(({ metatype }) => metatype === SessionsModule);
  if (roots.length === 1) return;
  throw new SessionsConfigurationError(
    'SessionsTestingModule brings its own SessionsModule.forRoot(), and imports have another. Import the modules that ' +
      "use it instead, or test the whole application with Nest's Test.createTestingModule, and give its store a TestClock.",
  );
}
