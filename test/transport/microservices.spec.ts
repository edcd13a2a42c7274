import 'reflect-metadata';
import { type AddressInfo } from 'node:net';
import { Controller, type INestMicroservice, Module, UseGuards } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  type ClientProxy,
  ClientProxyFactory,
  EventPattern,
  MessagePattern,
  type MicroserviceOptions,
  Payload,
  Transport,
} from '@nestjs/microservices';
import {
  AllowAnonymousSession,
  memoryAdapter,
  SessionGuard,
  SessionId,
  SessionsModule,
  SessionStore,
  UseSession,
} from 'nestjs-agent-sessions';
import { firstValueFrom } from 'rxjs';
import { eventually } from '../support/eventually.js';
import { PairGuard } from './handlers.js';

const heard: string[] = [];

@Controller()
@UseGuards(SessionGuard)
class Microservice {
  @MessagePattern('mine')
  @UseSession()
  mine(@SessionId() id: string): string {
    return id;
  }

  @MessagePattern('anybodys')
  @UseSession()
  @AllowAnonymousSession()
  anybodys(@SessionId() id: string, @Payload('sessionId') sent: string): string {
    return `${id} ${sent}`;
  }

  @EventPattern('moved')
  @UseSession({ from: 'data:source' })
  @AllowAnonymousSession()
  @UseGuards(PairGuard)
  left(@SessionId() id: string): void {
    heard.push(`left ${id}`);
  }

  @EventPattern('moved')
  @UseSession({ from: 'data:target' })
  @AllowAnonymousSession()
  @UseGuards(PairGuard)
  entered(@SessionId() id: string): void {
    heard.push(`entered ${id}`);
  }

  @EventPattern('lost')
  @UseSession()
  lost(@SessionId() id: string): void {
    heard.push(`lost ${id}`);
  }
}

@Module({
  imports: [SessionsModule.forRoot({ adapter: memoryAdapter(), sweep: false })],
  controllers: [Microservice],
  providers: [PairGuard],
})
class MicroserviceModule {}

describe('a standalone microservice over TCP', () => {
  let app: INestMicroservice;
  let client: ClientProxy;
  let id: string;

  beforeAll(async () => {
    const options = { host: '127.0.0.1', port: 0 };
    app = await NestFactory.createMicroservice<MicroserviceOptions>(MicroserviceModule, {
      transport: Transport.TCP,
      options,
      logger: false,
    });
    await app.listen();
    const { port } = app.unwrap<{ address(): AddressInfo }>().address();
    client = ClientProxyFactory.create({ transport: Transport.TCP, options: { ...options, port } });
    ({ id } = await app.get(SessionStore).create({ userId: 'ann' }));
  });

  afterAll(async () => {
    client.close();
    await app.close();
  });

  const send = (pattern: string, data: object): Promise<unknown> => firstValueFrom(client.send<unknown>(pattern, data));

  it('NST-11 ignores users in the payload by default', async () => {
    const claims = { sessionId: id, user: { id: 'ann' }, userId: 'ann' };

    await expect(send('mine', claims)).rejects.toEqual({
      statusCode: 401,
      code: 'UNAUTHENTICATED',
      message: 'The request has no user. Sign in first.',
    });
    expect(await send('anybodys', claims)).toBe(`${id} ${id}`);
  });

  it('NST-10 isolates the sessions of two handlers of one event', async () => {
    const { id: target } = await app.get(SessionStore).create({ userId: 'ann' });

    client.emit('moved', { source: id, target });

    await eventually(() => heard.length === 2);
    expect([...heard].sort()).toEqual([`entered ${target}`, `left ${id}`]);
  });

  it('NST-15 continues after a rejected event', async () => {
    client.emit('lost', { sessionId: id });
    await expect(send('mine', {})).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });

    expect(heard.filter((what) => what.startsWith('lost'))).toEqual([]);
  });
});
