import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  type InjectionToken,
  Logger,
  type OnApplicationShutdown,
  type OnModuleDestroy,
} from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { traceOf } from '../common/error-trace.js';
import { logDetails, useLogDetails } from '../common/log-details.js';
import { findProvider } from '../common/nest-providers.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { ConversationCompactor } from '../conversation/conversation-compactor.service.js';
import { HttpConnections } from '../http/http-connections.js';
import { SessionSweeper } from '../maintenance/session-sweeper.service.js';
import { OrchestrationAgents } from '../orchestration/orchestration-agents.js';
import { OrchestratorExplorer } from '../orchestrator/orchestrator.explorer.js';
import { OrchestratorRegistry } from '../orchestrator/orchestrator.registry.js';
import { TurnContextFactory } from '../orchestrator/turn-context.js';
import { type SessionsAdapter } from '../ledger/sessions.adapter.js';
import { moduleMessages } from './module.messages.js';
import { type SessionsSettings } from './sessions.settings.js';
import { type ProcessRole } from './sessions.options.js';
import {
  SESSIONS_ADAPTER,
  SESSIONS_CONTROLLERS,
  SESSIONS_ROLE,
  SESSIONS_SETTINGS,
  TURN_QUEUE,
} from '../common/sessions.tokens.js';
import { startSummary } from './start-summary.js';
import { LaneReconciler } from '../turn/lane-reconciler.service.js';
import { type TurnQueue } from '../ledger/turn-queue.js';
import { StartPhase } from '../turn/start-phase.js';
import { TurnService } from '../turn/turn.service.js';
import { TurnWorker } from '../turn/turn-worker.service.js';

/** The time that a stopping worker needs after its grace period. */
const STOP_MARGIN_MS = 5000;
const MAX_STOP_MS = 60_000;

/**
 * Starts and stops the parts in order (NST-05). Start: the store connects when it is injected, orchestrators are
 * discovered in module init, and work begins after the application has started. Stop: intake and claims, when
 * the application destroys its modules; then workers, waiting callers, and the store.
 */
@Injectable()
export class SessionsLifecycle implements OnModuleDestroy, BeforeApplicationShutdown, OnApplicationShutdown {
  private readonly logger = new Logger('AgentSessions');
  private working = false;
  private stopping = false;
  private endLogDetails = (): void => undefined;

  constructor(
    @Inject(SESSIONS_SETTINGS) private readonly settings: SessionsSettings,
    @Inject(SESSIONS_ADAPTER) private readonly adapter: SessionsAdapter,
    private readonly explorer: OrchestratorExplorer,
    private readonly turns: TurnService,
    private readonly worker: TurnWorker,
    private readonly reconciler: LaneReconciler,
    private readonly sweeper: SessionSweeper,
    private readonly moduleRef: ModuleRef,
    @Inject(TURN_QUEUE) private readonly queue: TurnQueue,
    @Inject(SESSIONS_ROLE) private readonly role: ProcessRole,
    private readonly registry: OrchestratorRegistry,
    private readonly connections: HttpConnections,
    private readonly agents: OrchestrationAgents,
    private readonly compactor: ConversationCompactor,
    private readonly phase: StartPhase,
    @Inject(SESSIONS_CONTROLLERS) private readonly controllers: readonly string[],
  ) {}

  /** Discovers the orchestrators. */
  async initialize(): Promise<void> {
    // The details apply to the whole process. If another module then fails to start, Nest calls no hook that could end them.
    const endLogDetails = useLogDetails(this.settings.logging);
    try {
      await this.discover();
    } finally {
      endLogDetails();
    }
  }

  /** Begins work. */
  async start(): Promise<void> {
    this.endLogDetails = useLogDetails(this.settings.logging);
    try {
      await this.begin();
    } catch (error) {
      this.endLogDetails();
      throw error;
    }
  }

  private async discover(): Promise<void> {
    // The queue is closed. If it were opened again, nothing would close it.
    if (this.isStopping()) return;
    await this.queue.init?.(<T>(token: InjectionToken) => findProvider<T>(this.moduleRef, token));
    await this.explorer.explore();
    // The first turn would report a factory that is not a singleton.
    findProvider(this.moduleRef, TurnContextFactory);
    this.phase.orchestratorsKnown();
  }

  private async begin(): Promise<void> {
    if (this.role === 'work') this.assertWork();
    this.logStart();
    await this.agents.publish();
    if (this.role === 'submit' || this.isStopping()) return;
    await this.adapter.beginWork?.({ waitMs: this.stoppingMs });
    if (this.isStopping()) return;
    this.working = true;
    await this.worker.start();
    this.phase.workerStarted();
    await this.reconciler.start();
    if (!this.isStopping()) this.sweeper.start();
  }

  /** An application can be closed while it starts: Nest does not wait for the end of the start. */
  private isStopping(): boolean {
    return this.stopping;
  }

  /** How long a stopping worker with the same settings may hold its lock (FIX-68). */
  private get stoppingMs(): number {
    return Math.min(this.settings.turns.shutdownGraceMs + STOP_MARGIN_MS, MAX_STOP_MS);
  }

  /** Stops accepting and claiming turns. Running turns continue. A second call has no effect. */
  async onModuleDestroy(): Promise<void> {
    this.stopping = true;
    this.turns.stopIntake();
    await Promise.all([this.worker.claimNoMore(), this.reconciler.stop()]);
  }

  async beforeApplicationShutdown(): Promise<void> {
    if (this.working) {
      await this.sweeper.stop();
      await this.closeQueue(() => this.worker.stop());
    } else {
      await this.closeQueue(() => this.queue.close());
    }
    await this.compactor.stop();
    // Open connections, and requests that wait for a turn, would keep the HTTP server from closing.
    this.connections.disableKeepAlive();
    await this.turns.close();
  }

  async onApplicationShutdown(): Promise<void> {
    try {
      await this.adapter.close?.();
    } finally {
      this.endLogDetails();
    }
  }

  /** Closes the queue. An error is logged, so that the shutdown of the application continues. */
  private async closeQueue(close: () => Promise<void>): Promise<void> {
    try {
      await close();
    } catch (error) {
      this.logger.error('The queue could not be closed.', traceOf(error));
    }
  }

  /** Rejects a worker process without work to do: it would release every turn. */
  private assertWork(): void {
    if (this.registry.names().length > 0) return;
    throw new SessionsConfigurationError(moduleMessages.workWithoutOrchestrator());
  }

  private logStart(): void {
    const { adapter, queue, role, controllers } = this;
    const { sessionTtlMs: ttlMs } = this.settings.turns;
    const { maxLifetimeMs } = this.settings.sessions;
    const orchestrators = this.registry.names();
    const parts = { adapter, queue, role, controllers, orchestrators, ttlMs, maxLifetimeMs, logging: logDetails() };
    this.logger.log(startSummary(parts));
    if (this.settings.adapterByDefault && process.env.NODE_ENV === 'production') {
      this.logger.warn(moduleMessages.noAdapter());
    } else if (this.adapter.volatile) {
      this.logger.log(moduleMessages.volatileStore());
    }
    if (this.adapter.volatile && !this.settings.queueByDefault)
      this.logger.warn(moduleMessages.volatileStoreWithQueue());
    if (this.settings.queueByDefault && this.adapter.shared && this.role !== 'submit') {
      this.logger.log(moduleMessages.localQueue());
    }
  }
}
