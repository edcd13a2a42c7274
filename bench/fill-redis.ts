import { Redis } from 'ioredis';
import { type SessionsAdapter } from 'nestjs-agent-sessions';
import { redisAdapter } from 'nestjs-agent-sessions/redis';
import {
  answerOf,
  FIRST_HASH,
  FIRST_KEY,
  idOf,
  ORCHESTRATOR,
  type Population,
  questionOf,
  sessionOf,
  stateOf,
  turnIdOf,
  VERSION,
} from './population.js';

/** Sessions to fill concurrently. */
const AT_ONCE = 500;

/** Fills with the store's operations, so that keys have the store's own format. */
export async function fillRedis(url: string, population: Population): Promise<void> {
  const client = new Redis(url, { enableAutoPipelining: true, maxRetriesPerRequest: 0 });
  const adapter = redisAdapter({ client, keyPrefix: keyPrefixOf(population.count), operationTimeoutMs: 60_000 });
  await adapter.init?.();
  try {
    for (let from = 0; from < population.count; from += AT_ONCE) {
      const length = Math.min(AT_ONCE, population.count - from);
      await Promise.all(Array.from({ length }, (_, i) => fillSession(adapter, from + i, population)));
    }
  } finally {
    await adapter.close?.();
    client.disconnect();
  }
}

export function keyPrefixOf(count: number): string {
  return `bench-${count}`;
}

/** The session is written last, because a turn that settles would touch it. */
async function fillSession(adapter: SessionsAdapter, n: number, population: Population): Promise<void> {
  const { turns, sessions } = adapter;
  const [id, sessionId] = [turnIdOf(n), idOf(n)];
  await turns.accept({
    id,
    sessionId,
    orchestrator: ORCHESTRATOR,
    version: VERSION,
    request: { input: { text: questionOf(n) } },
    attributes: {},
    whenBusy: 'enqueue',
    maxQueued: 100,
    idempotency: { key: FIRST_KEY, hash: FIRST_HASH, ttlMs: 86_400_000 },
    foreignSession: true,
  });
  const claimed = await turns.claim(sessionId, { holder: id, leaseMs: 60_000, maxLost: 3, windows: {} });
  if (!claimed) throw new Error(`The first turn of ${sessionId} could not be claimed.`);
  await turns.settle(claimed.hold, {
    status: 'awaiting-input',
    reply: { text: answerOf(n) },
    messages: [
      { id: `${id}.0`, role: 'user', content: questionOf(n) },
      { id: `${id}.1`, role: 'assistant', content: answerOf(n) },
    ],
    checkpoint: {
      orchestrator: ORCHESTRATOR,
      sessionId,
      turnIndex: 0,
      turnId: id,
      state: stateOf(n),
      lastRoute: ['status'],
      signature: 'signature',
      version: VERSION,
      summarizedThrough: 0,
    },
    keepCheckpoints: 100,
  });
  await sessions.insert(sessionOf(n, population));
}
