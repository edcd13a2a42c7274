import 'reflect-metadata';
import { type AddressInfo } from 'node:net';
import { Controller, type INestApplication, type Type, UseFilters, UseGuards } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { GraphQLModule, Query, ResolveField, Resolver } from '@nestjs/graphql';
import { ClientProxyFactory, MessagePattern, Payload, Transport } from '@nestjs/microservices';
import { WsAdapter } from '@nestjs/platform-ws';
import { Test } from '@nestjs/testing';
import { MessageBody, SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import {
  RequireTool,
  SessionGuard,
  SessionsConfigurationError,
  SessionsExceptionFilter,
  SessionsModule,
  SessionStore,
  ToolGuard,
  UseSession,
} from 'nestjs-agent-sessions';
import { firstValueFrom } from 'rxjs';
import { rejection } from '../support/running-application.js';
import { PlainSocket } from './transports.js';

interface Message {
  readonly sessionId: string;
  readonly user: string;
}

/** The sessions for which a handler ran. */
const served: string[] = [];

@Controller()
class Messages {
  @MessagePattern('say')
  @UseSession()
  say(@Payload() { sessionId }: Message): string {
    served.push(sessionId);
    return 'said';
  }
}

@WebSocketGateway()
@UseFilters(SessionsExceptionFilter)
@UseSession()
class Gateway {
  @SubscribeMessage('say')
  say(@MessageBody() { sessionId }: Message): string {
    served.push(sessionId);
    return 'said';
  }
}

const PRINCIPAL = (context: { getArgByIndex(index: number): unknown; getType(): string }) => {
  const { user } = context.getArgByIndex(context.getType() === 'ws' ? 1 : 0) as Message;
  return { userId: user };
};

describe('a handler of messages whose SessionGuard is global', () => {
  let app: INestApplication;
  let sessionId: string;

  afterEach(async () => {
    served.length = 0;
    await app.close();
  });

  async function start(type: Type): Promise<void> {
    const module = await Test.createTestingModule({
      imports: [SessionsModule.forRoot({ sweep: false, principal: PRINCIPAL })],
      controllers: type === Messages ? [Messages] : [],
      providers: [{ provide: APP_GUARD, useExisting: SessionGuard }, ...(type === Messages ? [] : [type])],
    }).compile();
    app = module.createNestApplication({ logger: false });
    ({ id: sessionId } = await app.get(SessionStore).create({ userId: 'ann' }));
  }

  async function ask(inheritAppConfig: boolean, user: string): Promise<unknown> {
    const tcp = { transport: Transport.TCP, options: { host: '127.0.0.1', port: 0 } } as const;
    const server = app.connectMicroservice(tcp, { inheritAppConfig });
    await app.init();
    await app.startAllMicroservices();
    const { port } = server.unwrap<{ address(): AddressInfo }>().address();
    const client = ClientProxyFactory.create({ ...tcp, options: { host: '127.0.0.1', port } });
    try {
      return await firstValueFrom(client.send<unknown>('say', { sessionId, user })).catch((error: unknown) => error);
    } finally {
      client.close();
    }
  }

  it('FIX-72 does not run in a microservice without the configuration of the application', async () => {
    await start(Messages);
    expect(await ask(false, 'ann')).toMatchObject({ status: 'error' });
    expect(served).toEqual([]);
  });

  it('FIX-72 runs in a microservice with the configuration of the application', async () => {
    await start(Messages);
    expect(await ask(true, 'ann')).toBe('said');
    expect(served).toEqual([sessionId]);
  });

  it('FIX-72 runs in a gateway only if the guard has run', async () => {
    await start(Gateway);
    app.useWebSocketAdapter(new WsAdapter(app));
    await app.listen(0, '127.0.0.1');
    const socket = await PlainSocket.open(await app.getUrl(), {});
    const say = (user: string) => socket.ask({ event: 'say', data: { sessionId, user } });
    expect(await say('bob')).toMatchObject({ event: 'exception' });
    expect(served).toEqual([]);
    // Nest 12 applies global guards to gateways, Nest 11 does not.
    const { event } = await say('ann');
    expect(served).toEqual(event === 'exception' ? [] : [sessionId]);
  });
});

@Resolver('Talk')
@UseGuards(SessionGuard)
class Fields {
  @Query('talk')
  talk(): object {
    return {};
  }

  @ResolveField('secret')
  @UseSession({ from: 'data:id' })
  secret(): string {
    return 'secret';
  }
}

@Resolver('Talk')
@UseGuards(SessionGuard, ToolGuard)
class Tools {
  @Query('talk')
  @UseSession({ from: 'data:id' })
  talk(): object {
    return {};
  }

  @ResolveField('secret')
  @RequireTool('search')
  secret(): string {
    return 'secret';
  }
}

/** The query is in another class. */
@Resolver('Talk')
@UseSession({ from: 'data:id' })
@UseGuards(SessionGuard)
class FieldsOnly {
  @ResolveField('secret')
  secret(): string {
    return 'secret';
  }
}

@Resolver('Talk')
@UseSession({ from: 'data:id' })
class UnguardedFields {
  @ResolveField('secret')
  secret(): string {
    return 'secret';
  }
}

/** The mark belongs to the query. */
@Resolver('Talk')
@UseSession({ from: 'data:id' })
@UseGuards(SessionGuard)
class FieldsOfQuery {
  @Query('talk')
  talk(): object {
    return {};
  }

  @ResolveField('secret')
  secret(): string {
    return 'secret';
  }
}

describe('fields of GraphQL below a query', () => {
  const typeDefs = 'type Query { talk(id: ID): Talk } type Talk { secret(id: ID): String }';

  async function start(type: Type, fieldResolverEnhancers?: ApolloDriverConfig['fieldResolverEnhancers']) {
    const enhancers = fieldResolverEnhancers && { fieldResolverEnhancers };
    const module = await Test.createTestingModule({
      imports: [
        SessionsModule.forRoot({ sweep: false }),
        GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, typeDefs, ...enhancers }),
      ],
      providers: [type],
    }).compile();
    const app = module.createNestApplication({ logger: false });
    return app.init();
  }

  it.each([
    [Fields, undefined],
    [Fields, ['interceptors']],
    [Tools, ['guards']],
    [FieldsOnly, undefined],
    [UnguardedFields, ['guards']],
  ] as const)('FIX-72 stop the start if no guards run for them: %p with %j', async (type, enhancers) => {
    const error = await rejection(start(type, enhancers && [...enhancers]), SessionsConfigurationError);
    expect(error.message).toMatch(new RegExp(`^${type.name}.secret has @.+ fieldResolverEnhancers: `));
  });

  it.each([Fields, FieldsOnly])('FIX-72 can have marks if guards and interceptors run for them: %p', async (type) => {
    await (await start(type, ['guards', 'interceptors', 'filters'])).close();
  });

  it('FIX-72 stop the start without the guard, although guards run for them', async () => {
    const error = await rejection(start(UnguardedFields, ['guards', 'interceptors']), SessionsConfigurationError);
    expect(error.message).toContain('UnguardedFields.secret has @UseSession(), but SessionGuard does not run for it.');
  });

  it('FIX-72 use the session of the query in their class', async () => {
    await (await start(FieldsOfQuery)).close();
  });
});
