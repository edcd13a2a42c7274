import { type DynamicModule, Module } from '@nestjs/common';
import { APP_PIPE } from '@nestjs/core';
import { SessionsModule } from 'nestjs-agent-sessions';
import { StrictValidationPipe } from '../01-support-desk/strict-validation.pipe.js';
import { ChatController } from './chat.controller.js';
import { ModelRouter } from './model-router.js';
import { Models } from './models.js';
import { OrdersService } from './orders.service.js';
import { SupportAgent } from './support.agent.js';

@Module({})
export class AppModule {
  static with(models: Models): DynamicModule {
    return {
      module: AppModule,
      imports: [SessionsModule.forRoot(), SessionsModule.forFeature([SupportAgent])],
      controllers: [ChatController],
      providers: [
        { provide: Models, useValue: models },
        ModelRouter,
        OrdersService,
        { provide: APP_PIPE, useClass: StrictValidationPipe },
      ],
    };
  }
}
