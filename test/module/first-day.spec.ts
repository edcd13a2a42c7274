import 'reflect-metadata';
import {
  Body,
  type CanActivate,
  Controller,
  type ExecutionContext,
  Injectable,
  Module,
  Post,
  UseGuards,
} from '@nestjs/common';
import { type NestExpressApplication } from '@nestjs/platform-express';
import { NestFactory } from '@nestjs/core';
import {
  CurrentSession,
  InjectOrchestrator,
  Intent,
  memoryAdapter,
  Orchestrator,
  OrchestratorHandle,
  reply,
  Route,
  type Session,
  SessionGuard,
  SessionsModule,
  SessionStore,
  type TurnContext,
  UseSession,
} from 'nestjs-agent-sessions';
import request from 'supertest';

/** The services, authentication and bodies that the example assumes. */
interface Desk {
  orderId?: string;
}

interface Order {
  readonly id: string;
  readonly status: string;
}

class SayDto {
  text!: string;
}

@Injectable()
class OrdersService {
  find(id = '7'): Order {
    return { id, status: 'shipped' };
  }
}

@Injectable()
class AuthGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<{ user?: object }>();
    request.user = { id: 'ann' };
    return true;
  }
}

// From here on, the code is as in the documentation.

@Orchestrator({ name: 'support-desk', version: '1', historyWindow: { agents: 20 } })
export class SupportDesk {
  constructor(private readonly orders: OrdersService) {}

  @Route()
  route(turn: TurnContext<Desk>) {
    return /refund/i.test(turn.input.text) ? 'refund' : 'status';
  }

  @Intent()
  async status(turn: TurnContext<Desk>) {
    const order = await turn.step('load order', () => this.orders.find(turn.state.orderId));
    return reply(`Order ${order.id} is ${order.status}.`, { state: { orderId: order.id } });
  }

  @Intent()
  refund(turn: TurnContext<Desk>) {
    return reply(`You want your money for order ${turn.state.orderId ?? 'unknown'}.`);
  }
}

@Controller('chat')
@UseGuards(AuthGuard, SessionGuard)
export class ChatController {
  constructor(@InjectOrchestrator(SupportDesk) private readonly desk: OrchestratorHandle<Desk>) {}

  @Post()
  @UseSession()
  async say(@CurrentSession() session: Session, @Body() body: SayDto) {
    return this.desk.execute(body.text, { sessionId: session.id });
  }
}

@Module({
  imports: [
    SessionsModule.forRoot({ adapter: memoryAdapter(), ttlSeconds: 3600 }),
    SessionsModule.forFeature([SupportDesk]),
  ],
  controllers: [ChatController],
  providers: [OrdersService],
})
export class AppModule {}

let app: NestExpressApplication | undefined;

afterEach(() => app?.close());

it('NST-02 runs the getting-started example unchanged', async () => {
  app = await NestFactory.create<NestExpressApplication>(AppModule, { logger: false });
  await app.init();
  const session = await app.get(SessionStore).create({ userId: 'ann' });
  const server = app.getHttpServer();
  const say = async (text: string): Promise<unknown> => {
    const answer = await request(server).post('/chat').set('x-session-id', session.id).send({ text }).expect(201);
    return answer.body;
  };

  expect(await say('where is my order?')).toEqual({
    id: expect.stringMatching(/^[0-9a-f]{32}$/) as string,
    sessionId: session.id,
    status: 'awaiting-input',
    turnIndex: 0,
    reply: 'Order 7 is shipped.',
  });
  // The second turn reads the state of the first.
  expect(await say('then I want a refund')).toMatchObject({ turnIndex: 1, reply: 'You want your money for order 7.' });
  await request(server).post('/chat').send({ text: 'hello?' }).expect(400);
});
