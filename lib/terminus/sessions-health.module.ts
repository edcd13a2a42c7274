import { Module } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { loadPeer } from '../common/load-peer.js';
import { findProvider, lazily } from '../common/nest-providers.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { SessionSweeper } from '../maintenance/session-sweeper.service.js';
import { type SessionsAdapter } from '../ledger/sessions.adapter.js';
import { SESSIONS_ADAPTER, TURN_QUEUE } from '../common/sessions.tokens.js';
import { type TurnQueue } from '../ledger/turn-queue.js';
import { TurnDependencies } from '../turn/turn-dependencies.js';
import { TurnService } from '../turn/turn.service.js';
import { type HealthSources, SessionsHealthIndicator } from './sessions-health.indicator.js';

/**
 * Provides {@link SessionsHealthIndicator}. `SessionsModule.forRoot` may be imported anywhere in the application.
 * @throws SessionsConfigurationError at startup without @nestjs/terminus; at the first check without SessionsModule
 */
@Module({
  providers: [
    {
      provide: SessionsHealthIndicator,
      inject: [ModuleRef],
      useFactory: async (moduleRef: ModuleRef) => {
        const { HealthIndicatorService } = await loadPeer('@nestjs/terminus', () => import('@nestjs/terminus'));
        return new SessionsHealthIndicator(
          new HealthIndicatorService(),
          lazily(() => sourcesIn(moduleRef)),
        );
      },
    },
  ],
  exports: [SessionsHealthIndicator],
})
export class SessionsHealthModule {}

/** Finds the parts at the first check, because the store is opened during startup. */
function sourcesIn(moduleRef: ModuleRef): HealthSources {
  const adapter = findProvider<SessionsAdapter>(moduleRef, SESSIONS_ADAPTER);
  const queue = findProvider<TurnQueue>(moduleRef, TURN_QUEUE);
  const turns = findProvider(moduleRef, TurnService);
  const sweeper = findProvider(moduleRef, SessionSweeper);
  const storeWatch = findProvider(moduleRef, TurnDependencies)?.storeWatch;
  if (adapter && queue && turns && sweeper && storeWatch) return { adapter, queue, turns, sweeper, storeWatch };
  throw new SessionsConfigurationError(
    'SessionsHealthModule: SessionsModule is missing. Import SessionsModule.forRoot() or forRootAsync() once.',
  );
}
