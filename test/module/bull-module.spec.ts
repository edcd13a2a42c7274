import { randomUUID } from 'node:crypto';
import { BullModule, getQueueToken } from '@nestjs/bullmq';
import { type Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { bullmqQueue } from 'nestjs-agent-sessions/bullmq';
import { Echo } from '../support/application.js';
import { eventually } from '../support/eventually.js';
import { startApplication } from '../support/running-application.js';
import { describeRedis, REDIS } from '../support/servers.js';

describeRedis('bullmqQueue in an application with @nestjs/bullmq', () => {
  it('TRN-21 uses the connection of BullModule.forRoot', async () => {
    const prefix = `{${randomUUID()}}`;
    const app = await startApplication({
      imports: [BullModule.forRoot({ connection: { url: REDIS.url }, prefix })],
      turns: { queue: bullmqQueue() },
      orchestrators: [Echo],
    });
    expect(await app.handle(Echo).execute('hi', { sessionId: await app.session() })).toMatchObject({ turnIndex: 0 });

    const client = new Redis(REDIS.url);
    expect(await client.exists(`${prefix}:agent-sessions:meta`)).toBe(1);
    await client.quit();
    await app.close();
  });

  it('TRN-21 provides its queue by name, like any other', async () => {
    const app = await startApplication({
      imports: [
        BullModule.forRoot({ connection: { url: REDIS.url }, prefix: `{${randomUUID()}}` }),
        BullModule.registerQueue({ name: 'agent-sessions' }),
      ],
      turns: { queue: bullmqQueue() },
      role: 'submit',
      orchestrators: [Echo],
    });
    await app.turns.submit('echo', 'hi', { sessionId: await app.session() });
    const queue = app.app.get<Queue>(getQueueToken('agent-sessions'), { strict: false });
    await eventually(async () => (await queue.getJobCountByTypes('waiting')) === 1);
    await app.close();
  });
});
