import { Module } from '@nestjs/common';
import { APP_FILTER, APP_PIPE } from '@nestjs/core';
import { SessionsModule } from 'nestjs-agent-sessions';
import { typeormAdapter } from 'nestjs-agent-sessions/typeorm';
import { ChatController } from './chat.controller.js';
import { ErrorFilter } from './error.filter.js';
import { HealthController } from './health.controller.js';
import { OrdersService } from './orders.service.js';
import { OverviewController } from './overview.controller.js';
import { SessionController } from './session.controller.js';
import { StrictValidationPipe } from './strict-validation.pipe.js';
import { SupportDesk } from './support-desk.orchestrator.js';
import { TerminalController } from './terminal.controller.js';

@Module({
  imports: [
    SessionsModule.forRootAsync({
      useFactory: () => ({
        adapter: typeormAdapter({
          dataSource: { type: 'better-sqlite3', database: process.env.SESSIONS_DB ?? 'support-desk.db' },
        }),
      }),
    }),
    SessionsModule.forFeature([SupportDesk]),
  ],
  controllers: [SessionController, ChatController, OverviewController, TerminalController, HealthController],
  providers: [
    OrdersService,
    { provide: APP_PIPE, useClass: StrictValidationPipe },
    { provide: APP_FILTER, useClass: ErrorFilter },
  ],
})
export class AppModule {}
