import { randomBytes } from 'node:crypto';
import { Logger } from '@nestjs/common';
import { Cluster } from 'ioredis';
import { redisAdapter } from 'nestjs-agent-sessions/redis';
import { describeSessionsAdapter } from '../../lib/testing/index.js';
import { limitModelRuns } from '../support/model-runs.js';
import { PrivateRedis } from '../support/private-redis.js';
import { describeRedis } from '../support/servers.js';

limitModelRuns(10);

/** A cluster node rejects a script with keys of several hash slots, for any number of nodes. */
describeRedis('the store on a Redis Cluster', () => {
  let redis: PrivateRedis;
  const clients: Cluster[] = [];

  beforeAll(() => {
    Logger.overrideLogger(false);
  });

  afterAll(async () => {
    for (const client of clients) client.disconnect();
    await redis.stop();
  });

  describeSessionsAdapter('redis cluster', async () => {
    redis = await PrivateRedis.startCluster();
    const keyPrefix = `t${randomBytes(6).toString('hex')}`;
    const connect = () => {
      const client = new Cluster([redis.url]);
      clients.push(client);
      return redisAdapter({ client, keyPrefix });
    };
    return { adapter: connect(), connect, claimsOnAccept: true };
  });
});
