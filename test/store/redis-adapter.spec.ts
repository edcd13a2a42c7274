import { randomBytes } from 'node:crypto';
import { redisAdapter } from 'nestjs-agent-sessions/redis';
import { describeSessionsAdapter } from '../../lib/testing/index.js';

describeSessionsAdapter('redis', () => {
  const place = { url: process.env.TEST_REDIS_URL ?? '', keyPrefix: `t${randomBytes(6).toString('hex')}` };
  return { adapter: redisAdapter(place), connect: () => redisAdapter(place) };
});
