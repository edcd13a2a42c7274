import { Cluster, Redis } from 'ioredis';
import { BullModule } from '@nestjs/bullmq';
import { SessionsConfigurationError, SessionsModule } from 'nestjs-agent-sessions';
import { bullmqQueue } from 'nestjs-agent-sessions/bullmq';
import pg from 'pg';
import { startApplication } from '../support/application.js';
import { describeBullmqOnPostgres, queueOptionsOn } from '../support/bullmq.js';
import { eventually } from '../support/eventually.js';
import { rejection } from '../support/running-application.js';
import { POSTGRES } from '../support/servers.js';

const JSON_OID = 114;
const JSONB_OID = 3802;

describe('the settings of ioredis for bullmqQueue', () => {
  const unused = { lazyConnect: true, stringNumbers: true };

  it.each<[string, () => object]>([
    ['options', () => ({ host: 'localhost', stringNumbers: true })],
    ['a client', () => new Redis(unused)],
    ['a client of a cluster', () => new Cluster(['localhost'], { lazyConnect: true, redisOptions: unused })],
  ])('FIX-66 rejects integers as strings in %s', (_, connection) => {
    const make = () => bullmqQueue({ connection: connection() });
    expect(make).toThrow(SessionsConfigurationError);
    expect(make).toThrow('bullmqQueue: connection: stringNumbers must not be true');
  });

  it('FIX-66 rejects integers as strings in the connection of BullModule', async () => {
    const imports = [
      BullModule.forRoot({ connection: { ...unused, host: 'localhost' } }),
      SessionsModule.forRoot({ turns: { queue: bullmqQueue() } }),
    ];
    const error = await rejection(startApplication({ imports }), SessionsConfigurationError);
    expect(error.message).toContain('BullModule.forRoot: connection: stringNumbers must not be true');
  });
});

describeBullmqOnPostgres('the settings of pg for bullmqQueue', () => {
  it('FIX-66 notifies the right session when JSON is text', async () => {
    const before = [JSON_OID, JSONB_OID].map((oid) => [oid, pg.types.getTypeParser(oid) as (text: string) => unknown]);
    const heard: string[] = [];
    const queue = bullmqQueue(queueOptionsOn(POSTGRES));
    for (const oid of [JSON_OID, JSONB_OID]) pg.types.setTypeParser(oid, (text) => text);
    try {
      await queue.process(async (sessionId) => void heard.push(sessionId));
      await queue.notify('s');
      await eventually(() => heard.length > 0);
      expect(heard).toEqual(['s']);
    } finally {
      await queue.close();
      for (const [oid, parser] of before) pg.types.setTypeParser(oid as number, parser as (text: string) => unknown);
    }
  });
});
