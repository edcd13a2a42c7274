import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common';
import { SessionSweeper } from './maintenance/session-sweeper.service.js';
import { OrchestratorExplorer } from './orchestrator/orchestrator.explorer.js';
import { type SessionsAdapter } from './sessions.adapter.js';
import { type SessionsSettings } from './sessions.settings.js';
import { SESSIONS_ADAPTER, SESSIONS_SETTINGS } from './sessions.tokens.js';
import { LaneReconciler } from './turn/lane-reconciler.service.js';
import { TurnService } from './turn/turn.service.js';
import { TurnWorker } from './turn/turn-worker.service.js';

/**
 * Starts and stops the parts in order (NST-05): the store is connected when it is injected, orchestrators are found at
 * module init, work begins once the whole application is up. Stop: intake, workers, waiting callers, then the store.
 */
@Injectable()
export class SessionsLifecycle
  implements OnModuleInit, OnApplicationBootstrap, BeforeApplicationShutdown, OnApplicationShutdown
{
  private readonly logger = new Logger('AgentSessions');
  private working = false;

  constructor(
    @Inject(SESSIONS_SETTINGS) private readonly settings: SessionsSettings,
    @Inject(SESSIONS_ADAPTER) private readonly adapter: SessionsAdapter,
    private readonly explorer: OrchestratorExplorer,
    private readonly turns: TurnService,
    private readonly worker: TurnWorker,
    private readonly reconciler: LaneReconciler,
    private readonly sweeper: SessionSweeper,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.explorer.explore();
  }

  async onApplicationBootstrap(): Promise<void> {
    this.warn();
    await this.adapter.beginWork?.();
    this.working = true;
    await this.worker.start();
    await this.reconciler.start();
    this.sweeper.start();
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.turns.stopIntake();
    if (this.working) {
      await this.sweeper.stop();
      await this.reconciler.stop();
      await this.worker.stop();
    }
    // Requests that wait for a turn would keep the HTTP server open.
    this.turns.close();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.adapter.close?.();
  }

  private warn(): void {
    if (this.settings.adapterByDefault && process.env.NODE_ENV === 'production') {
      this.logger.warn(
        'No adapter is configured, so sessions and turns live in memory and end with this process. ' +
          'Give SessionsModule.forRoot({ adapter }) a durable one.',
      );
    }
    if (this.settings.queueByDefault && this.adapter.shared) {
      this.logger.log(
        'Turns are queued in this process, and the store can be shared: order and exclusion hold over all processes, ' +
          'but work does not spread. A BullMQ queue (turns.queue) is the way to scale.',
      );
    }
  }
}
