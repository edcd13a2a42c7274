import 'reflect-metadata';
import { type INestApplication, UseGuards } from '@nestjs/common';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { GraphQLModule, Query, ResolveField, Resolver, Subscription } from '@nestjs/graphql';
import { Test } from '@nestjs/testing';
import {
  memoryAdapter,
  RequireTool,
  SessionGuard,
  SessionId,
  SessionsModule,
  SessionStore,
  ToolGuard,
  UseSession,
} from 'nestjs-agent-sessions';
import { WebSocket } from 'ws';
import { PairGuard } from './handlers.js';

const SCHEMA = `
  type Query { talk(id: ID): Talk, quiet: Talk, tool(id: ID): Talk }
  type Subscription { told(id: ID): ID }
  type Talk { id: ID, again: ID, deeper: [Talk] }
`;

@Resolver('Talk')
@UseGuards(SessionGuard)
class Talks {
  @Query('talk')
  @UseSession({ from: 'data:id' })
  @UseGuards(PairGuard)
  talk(@SessionId() id: string): object {
    return { id };
  }

  @Query('quiet')
  @UseSession({ optional: true })
  quiet(@SessionId() id: string | undefined): object {
    return { id };
  }

  @Query('tool')
  @UseSession({ from: 'data:id' })
  @UseGuards(ToolGuard)
  @RequireTool('search')
  tool(): object {
    return {};
  }

  @Subscription('told')
  @UseSession({ from: 'data:id' })
  async *told(@SessionId() id: string): AsyncGenerator<object> {
    yield await Promise.resolve({ told: id });
  }

  @ResolveField('again')
  again(@SessionId() id: string | undefined): string | undefined {
    return id;
  }

  @ResolveField('deeper')
  deeper(): object[] {
    return [{}, {}];
  }
}

describe('sessions in GraphQL', () => {
  let app: INestApplication;
  let sessions: SessionStore;
  let url: string;

  beforeAll(async () => {
    const module = await Test.createTestingModule({
      imports: [
        SessionsModule.forRoot({ adapter: memoryAdapter(), sweep: false }),
        GraphQLModule.forRoot<ApolloDriverConfig>({
          driver: ApolloDriver,
          typeDefs: SCHEMA,
          // As in development.
          includeStacktraceInErrorResponses: true,
          subscriptions: { 'graphql-ws': true },
          // For operations over HTTP and over graphql-ws.
          context: ({ req, extra }: Partial<Record<'req' | 'extra', Carrying>>) => {
            const request = req ?? extra?.request;
            return { user: { id: request?.headers['x-user-id'] } };
          },
        }),
      ],
      providers: [Talks, PairGuard],
    }).compile();
    app = module.createNestApplication({ logger: false });
    await app.listen(0, '127.0.0.1');
    url = `${await app.getUrl()}/graphql`;
    sessions = app.get(SessionStore);
  });

  afterAll(() => app.close());

  const annsSession = async (): Promise<string> => (await sessions.create({ userId: 'ann' })).id;

  it('NST-10 isolates the sessions of fields in an operation, and shares each with nested fields', async () => {
    const [a, b] = [await annsSession(), await annsSession()];

    const result = await ask(`{
      a: talk(id: "${a}") { id again deeper { again deeper { again } } }
      b: talk(id: "${b}") { id again deeper { again } }
      quiet { id again }
    }`);

    const deepest = { again: a, deeper: [{ again: a }, { again: a }] };
    expect(result).toEqual({
      data: {
        a: { id: a, again: a, deeper: [deepest, deepest] },
        b: { id: b, again: b, deeper: [{ again: b }, { again: b }] },
        quiet: { id: null, again: null },
      },
    });
  });

  it('NST-15 returns errors with a code and a path but no stack, even if Apollo shows stacks', async () => {
    const { errors = [] } = await ask(`{ a: tool(id: "${await annsSession()}") { id } b: tool(id: "unknown") { id } }`);

    expect(errors.sort((one, other) => one.message.localeCompare(other.message))).toEqual([
      {
        message: 'Internal server error',
        path: ['a'],
        locations: expect.anything() as unknown,
        extensions: { statusCode: 500, code: 'CONFIGURATION', stacktrace: ['CONFIGURATION: Internal server error'] },
      },
      {
        message: 'Session not found: unknown',
        path: ['b'],
        locations: expect.anything() as unknown,
        extensions: {
          statusCode: 404,
          code: 'SESSION_NOT_FOUND',
          sessionId: 'unknown',
          stacktrace: ['SESSION_NOT_FOUND: Session not found: unknown'],
        },
      },
    ]);
  });

  it('NST-10 NST-11 guards subscriptions', async () => {
    const mine = await annsSession();
    const { id: theirs } = await sessions.create({ userId: 'bob' });

    expect(await subscribe(mine)).toMatchObject({ type: 'next', payload: { data: { told: mine } } });
    expect(await subscribe(theirs)).toMatchObject({
      payload: { errors: [{ extensions: { statusCode: 404, code: 'SESSION_NOT_FOUND', sessionId: theirs } }] },
    });
  });

  async function ask(query: string): Promise<{ data?: unknown; errors?: { message: string }[] }> {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-user-id': 'ann' },
      body: JSON.stringify({ query }),
    });
    return (await response.json()) as object;
  }

  /** Returns the first message of a subscription over graphql-ws. */
  function subscribe(id: string): Promise<unknown> {
    const socket = new WebSocket(url.replace('http', 'ws'), 'graphql-transport-ws', {
      headers: { 'x-user-id': 'ann' },
    });
    const send = (message: object): void => socket.send(JSON.stringify(message));
    return new Promise((resolve, reject) => {
      socket.on('error', reject);
      socket.on('open', () => send({ type: 'connection_init' }));
      socket.on('message', (text: Buffer) => {
        const message = JSON.parse(text.toString()) as { type: string };
        if (message.type === 'connection_ack') {
          send({ type: 'subscribe', id: '1', payload: { query: `subscription { told(id: "${id}") }` } });
        } else {
          resolve(message);
          socket.close();
        }
      });
    });
  }
});

interface Carrying {
  readonly headers: Readonly<Record<string, string>>;
  readonly request: Carrying;
}
