/**
 * An application that uses every entry point of the package. `packed-package.matrix.spec.ts` compiles it against the
 * tarball, with the strictest options: `undefined` where an option may be absent must compile.
 */
import { Module } from '@nestjs/common';
import {
  InjectOrchestrator,
  Intent,
  Orchestrator,
  OrchestratorHandle,
  reply,
  SessionsModule,
  type Turn,
  type TurnContext,
} from 'nestjs-agent-sessions';
import { adapterOverTables, type SessionsAdapter, type TableDatabase } from 'nestjs-agent-sessions/adapter';
import { scriptedModel, streamReply } from 'nestjs-agent-sessions/ai-sdk';
import { bullmqQueue } from 'nestjs-agent-sessions/bullmq';
import { readAnswer, stateClient, type TurnView } from 'nestjs-agent-sessions/client';
import { type ChatControllerOptions, type StateOperationResult } from 'nestjs-agent-sessions/http';
import { redisAdapter } from 'nestjs-agent-sessions/redis';
import { type SessionsHealthIndicator, SessionsHealthModule } from 'nestjs-agent-sessions/terminus';
import { scriptedOrchestrator, SessionsTestingModule } from 'nestjs-agent-sessions/testing';
import { typeormAdapter } from 'nestjs-agent-sessions/typeorm';

declare const found: string | undefined;
declare const seconds: number | undefined;
declare const database: TableDatabase;

@Orchestrator({ name: 'helper', version: '1' })
export class Helper {
  @Intent()
  chat(turn: TurnContext) {
    const model = scriptedModel(() => ({ text: 'Hello.', delayMs: seconds }));
    return streamReply(turn, { model, onInterrupted: undefined });
  }
}

export class Chat {
  constructor(@InjectOrchestrator(Helper) private readonly helper: OrchestratorHandle) {}

  async say(sessionId: string): Promise<string> {
    const { id } = await this.helper.submit('Hi', { sessionId, idempotencyKey: found });
    return id;
  }
}

export const adapters: readonly SessionsAdapter[] = [
  adapterOverTables(database, { label: found }),
  redisAdapter({ url: found }),
  typeormAdapter({ dataSource: { type: 'better-sqlite3', database: 'chat.db' }, tablePrefix: found }),
];

const chat: ChatControllerOptions = { guards: [], orchestrators: [Helper], maxStreamsPerPrincipal: seconds };

@Module({
  imports: [
    SessionsModule.forRoot({
      adapter: adapters[0],
      ttlSeconds: seconds,
      controllers: { chat },
      turns: { queue: bullmqQueue({ concurrency: seconds }) },
    }),
    SessionsModule.forFeature([Helper]),
    SessionsHealthModule,
  ],
  providers: [Chat],
})
export class AppModule {}

export function checkHealth(sessions: SessionsHealthIndicator): Promise<object> {
  return sessions.isHealthy('sessions', { maxWaitMs: seconds });
}

export async function showAnswer({ id }: TurnView): Promise<string> {
  let shown = '';
  for await (const { text, settled } of readAnswer({ url: `/turns/${id}/events`, idleTimeoutMs: seconds })) {
    shown = settled?.code ?? text;
  }
  return shown;
}

export function resetState(sessionId: string): Promise<StateOperationResult> {
  return stateClient({ baseUrl: 'https://example.org', path: found }).reset({ sessionId, dryRun: undefined });
}

export async function testChat(): Promise<unknown> {
  const helper = scriptedOrchestrator(Helper, [reply('Hello.', { data: undefined })]);
  const app = await SessionsTestingModule.create({ orchestrators: [helper], http: undefined });
  const conversation = await app.conversation({ userId: 'ann', workspaceId: found });
  const result = await conversation.say('Hi');
  await app.close();
  return result.reply;
}

export const approval: Turn['waitingFor'] = { signal: 'approval', until: found };
