import { Module } from '@nestjs/common';
import { SessionsModule } from 'nestjs-agent-sessions';
import { typeormAdapter } from 'nestjs-agent-sessions/typeorm';
import { BrowserGuard } from './browser.guard.js';
import { CHAT_MODEL, openChatModel } from './chat-model.js';
import { OrdersService } from './orders.service.js';
import { ShopAssistant } from './shop-assistant.orchestrator.js';

/** Megabytes for messages with attachments. */
const MAX_INPUT_BYTES = 8 * 1024 * 1024;

@Module({
  imports: [
    SessionsModule.forRoot({
      adapter: typeormAdapter({
        dataSource: { type: 'better-sqlite3', database: process.env.SESSIONS_DB ?? 'ai-chat.db' },
      }),
      turns: { maxInputBytes: MAX_INPUT_BYTES },
      // The page uses version 6 of the AI SDK.
      controllers: { chat: { path: 'api/chat', guards: [BrowserGuard], orchestrators: [ShopAssistant], protocol: 6 } },
    }),
    SessionsModule.forFeature([ShopAssistant]),
  ],
  providers: [OrdersService, { provide: CHAT_MODEL, useFactory: openChatModel }],
})
export class AppModule {}
