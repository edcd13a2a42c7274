import { type DynamicModule, Module } from '@nestjs/common';
import { APP_PIPE } from '@nestjs/core';
import { type ProcessRole, SessionsModule } from 'nestjs-agent-sessions';
import { StrictValidationPipe } from '../01-support-desk/strict-validation.pipe.js';
import { Assistant } from './assistant.orchestrator.js';
import { ChatController } from './chat.controller.js';
import { openQueue, openStore } from './connections.js';
import { WorkerNotes } from './worker-notes.service.js';

/** One application for every process; its role is all that differs. */
@Module({})
export class AppModule {
  static as(role: ProcessRole): DynamicModule {
    return {
      module: AppModule,
      imports: [
        SessionsModule.forRootAsync({
          role,
          useFactory: () => ({
            adapter: openStore(),
            turns: {
              queue: openQueue(),
              // A lane waits this long for a worker that was killed: short, because here that happens often.
              leaseMs: 2000,
              // A turn is lost with each worker that is killed while it runs there.
              retry: { maxLost: 20, backoff: { type: 'fixed', delayMs: 300 } },
            },
          }),
        }),
        SessionsModule.forFeature([Assistant]),
      ],
      controllers: role === 'work' ? [] : [ChatController],
      providers: [WorkerNotes, { provide: APP_PIPE, useClass: StrictValidationPipe }],
    };
  }
}
