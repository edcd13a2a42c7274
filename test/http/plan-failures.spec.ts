import 'reflect-metadata';
import { Controller, Param, Post } from '@nestjs/common';
import {
  defineOrchestrator,
  memoryAdapter,
  type SessionsErrorBody,
  SessionsModule,
  SessionStore,
  type TurnContext,
  TurnService,
} from 'nestjs-agent-sessions';
import request from 'supertest';
import { type HttpApp, PLATFORMS } from './http-app.js';

const desk = defineOrchestrator({
  name: 'desk',
  steps: [{ name: 'browse', isDefault: true, availableTools: { denied: ['pay'] } }],
  tokenBudget: 10,
  intents: {
    answer: async ({ input, tools, usage }: TurnContext) => {
      usage.assertWithinBudget();
      if (input.text === 'pay') await tools.use('pay', 'p', () => 'paid');
      usage.add({ input_tokens: 12 });
    },
  },
});

@Controller('chat')
class ChatController {
  constructor(private readonly turns: TurnService) {}

  @Post(':sessionId/:text')
  async chat(@Param('sessionId') sessionId: string, @Param('text') text: string): Promise<unknown> {
    return this.turns.execute('desk', text, { sessionId });
  }
}

describe.each(PLATFORMS)('a handler whose plan rejects a tool, on $name', ({ start }) => {
  let app: HttpApp;
  let sessionId: string;

  beforeEach(async () => {
    app = await start({
      imports: [SessionsModule.forRoot({ adapter: memoryAdapter() }), SessionsModule.forFeature([desk])],
      controllers: [ChatController],
    });
    ({ id: sessionId } = await app.get(SessionStore).create({ userId: 'ann' }));
  });

  afterEach(() => app.close());

  it('FIX-26 answers 403 for a refused tool', async () => {
    const { body } = (await post('pay').expect(403)) as { body: SessionsErrorBody };
    expect(body).toMatchObject({ statusCode: 403, code: 'TOOL_NOT_ALLOWED', sessionId });
    expect(body.turnId).toEqual(expect.any(String));
  });

  it('FIX-26 answers 429 for an exhausted budget', async () => {
    await post('search').expect(201);
    const { body } = (await post('search').expect(429)) as { body: SessionsErrorBody };
    expect(body).toMatchObject({ statusCode: 429, code: 'TOKEN_BUDGET_EXCEEDED', sessionId });
  });

  function post(text: string): request.Test {
    return request(app.getHttpServer()).post(`/chat/${sessionId}/${text}`);
  }
});
