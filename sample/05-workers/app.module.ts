import { type DynamicModule, Module } from '@nestjs/common';
import { APP_PIPE } from '@nestjs/core';
import { type ProcessRole, SessionsModule } from 'nestjs-agent-sessions';
import { StrictValidationPipe } from '../01-support-desk/strict-validation.pipe.js';
import { Assistant } from './assistant.orchestrator.js';
import { ChatController } from './chat.controller.js';
import { openQueue, openStore } from './connections.js';
import { WorkerNotes } from './worker-notes.service.js';

/** The application of every process. Processes differ by their role only. */
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
              // The time until another worker takes over from a killed one; short, because this sample kills workers often.
              leaseMs: 2000,
              // 4 of 100 steps fail: with the default of 3 attempts, one of 1,600 turns would fail. A turn counts as lost once
              // for each worker that is killed while it runs it.
              retry: { attempts: 10, maxLost: 20, backoff: { type: 'fixed', delayMs: 300 } },
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
