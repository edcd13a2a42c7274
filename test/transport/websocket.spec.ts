import 'reflect-metadata';
import { type ExecutionContext, UseFilters, UseGuards } from '@nestjs/common';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import {
  memoryAdapter,
  SessionGuard,
  SessionId,
  SessionsExceptionFilter,
  SessionsModule,
  SessionStore,
  UseSession,
} from 'nestjs-agent-sessions';
import { PairGuard } from './handlers.js';
import { type Call, type Reply, type Running, TRANSPORTS } from './transports.js';

/** Relies on the shared gateway, which keeps the handshake if the platform does not. */
@WebSocketGateway()
@UseFilters(SessionsExceptionFilter)
@UseGuards(SessionGuard)
class TextGateway {
  @SubscribeMessage('byHandshake')
  @UseSession({ from: 'header:X-Session-Id' })
  byHandshake(@SessionId() id: string): object {
    return { id };
  }

  @SubscribeMessage('byText')
  @UseSession({ from: textOf })
  @UseGuards(PairGuard)
  byText(@SessionId() id: string): object {
    return { id };
  }

  @SubscribeMessage('inherited')
  @UseSession({ from: 'data:constructor' })
  inherited(@SessionId() id: string): object {
    return { id };
  }

  @SubscribeMessage('byParam')
  @UseSession({ from: 'param:id' })
  byParam(@SessionId() id: string): object {
    return { id };
  }
}

const PLATFORMS = TRANSPORTS.filter(({ name }) => name.startsWith('WebSocket'));

describe.each(PLATFORMS)('sessions in $name', ({ start }) => {
  let running: Running;
  let sessions: SessionStore;

  beforeAll(async () => {
    running = await start({
      imports: [SessionsModule.forRoot({ adapter: memoryAdapter(), sweep: false })],
      providers: [TextGateway],
    });
    sessions = running.app.get(SessionStore);
  });

  afterAll(() => running.close());

  const asAnn = (handler: string, call: Call): Promise<Reply> => running.ask(handler, { user: 'ann', ...call });
  const annsSession = async (): Promise<string> => (await sessions.create({ userId: 'ann' })).id;

  it.each([
    ['an object', {}],
    ['a string', 'hello'],
    ['a number', 7],
    ['a list', ['a', 'b']],
    ['nothing', undefined],
  ])('NST-10 reads the id from a header of the handshake with any payload: %s', async (_, payload) => {
    const id = await annsSession();

    expect(await asAnn('byHandshake', { payload, handshake: { 'x-session-id': id } })).toEqual({ ok: { id } });
  });

  it('NST-10 keeps the sessions of string messages on one socket apart', async () => {
    const ids = [await annsSession(), await annsSession()];

    const replies = await Promise.all(ids.map((id) => asAnn('byText', { payload: id })));

    expect(replies.map((reply) => (reply as { ok: { id: string } }).ok.id).sort()).toEqual([...ids].sort());
  });

  it.each([['a string'], [7], [null], [undefined], [[]]])(
    'NST-10 finds no session id in a payload of %j',
    async (payload) => {
      expect(await asAnn('chat', { payload })).toMatchObject({ error: { code: 'SESSION_ID_MISSING' } });
    },
  );

  it('NST-10 ignores inherited properties of the payload', async () => {
    expect(await asAnn('inherited', {})).toMatchObject({ error: { code: 'SESSION_ID_MISSING' } });
  });

  it('NST-11 does not take the user from the payload', async () => {
    const sessionId = await annsSession();
    const user = { id: 'ann' };

    expect(await running.ask('chat', { sessionId, data: { user, handshake: { user }, data: { user } } })).toMatchObject(
      {
        error: { code: 'UNAUTHENTICATED' },
      },
    );
  });

  it('NST-10 rejects path parameters as a source in messages', async () => {
    expect(await asAnn('byParam', { data: { id: await annsSession() } })).toMatchObject({
      error: { statusCode: 500, code: 'CONFIGURATION' },
    });
  });
});

function textOf(context: ExecutionContext): string {
  return context.switchToWs().getData<string>();
}
