import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  Intent,
  Orchestrator,
  reply,
  SessionsModule,
  SessionStore,
  ToolNotAllowedError,
  type TurnContext,
  TurnService,
} from 'nestjs-agent-sessions';

@Orchestrator({
  name: 'shop',
  steps: [
    {
      name: 'browse',
      isDefault: true,
      availableTools: { denied: ['pay'] },
    },
    {
      name: 'check-out',
      conditions: [{ type: 'message_matches', value: '\\bcheck ?out\\b', flags: 'i' }],
      sequence: ['check_stock', 'pay'], // in this order, and no other tool
      onComplete: 'browse',
    },
  ],
})
class Shop {
  @Intent()
  async serve(turn: TurnContext) {
    // Ask your model here which tools to call. Offer it the tools that `turn.tools.allowed(['search', ...])` returns.
    const calls = turn.input.text.match(/search|check_stock|pay/g) ?? [];
    const results: string[] = [];
    for (const [at, tool] of calls.entries()) {
      try {
        results.push(await turn.tools.use(tool, `${turn.id}-${at}`, () => `${tool} done`)); // a model provides ids for its calls
      } catch (error) {
        if (!ToolNotAllowedError.isInstance(error)) throw error;
        results.push(error.message); // for the model: the message lists the allowed tools
      }
    }
    return reply(`(${turn.tools.activeStep?.name}) ${results.join(', ')}`);
  }
}

@Module({ imports: [SessionsModule.forRoot(), SessionsModule.forFeature([Shop])] })
class AppModule {}

const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
const { id: sessionId } = await app.get(SessionStore).create({ userId: 'ann' });
for (const text of ['search', 'pay', 'Check out: pay', 'check_stock', 'pay', 'Check out: check_stock, pay, search']) {
  const { reply: answer } = await app.get(TurnService).execute('shop', text, { sessionId });
  console.log(`${text.padEnd(37)}${answer}`);
}
await app.close();
