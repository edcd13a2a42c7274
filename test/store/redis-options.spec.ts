import { SessionsConfigurationError, StoreUnavailableError } from 'nestjs-agent-sessions';
import { portOfNobody } from '../support/port-of-nobody.js';
import { rejection } from '../support/running-application.js';
import { redisAdapter, type RedisAdapterOptions } from 'nestjs-agent-sessions/redis';

const url = 'redis://localhost:6379';

describe('the options of redisAdapter', () => {
  it.each<[string, unknown, string | RegExp]>([
    ['neither client nor url', {}, 'client or url'],
    ['both', { client: {}, url }, 'client or url'],
    ['an empty url', { url: '' }, 'redisAdapter: url is empty. Use a URL'],
    ['an undefined url', { url: undefined }, 'redisAdapter: url is undefined. Use a URL'],
    ['an unknown key', { url, prefix: 'shop' }, 'redisAdapter: prefix is not a known key. Allowed: client, url, '],
    ['an invalid url', { url: 6379 }, /url must .* Received: 6379\.$/],
    ['an invalid client', { client: { get: () => {} } }, /client must be an ioredis client\. Received: /],
    ['an empty prefix', { url, keyPrefix: '' }, /keyPrefix must .* Received: ''\.$/],
    ['a prefix with a hash tag', { url, keyPrefix: '{a}' }, /keyPrefix must .* Received: '\{a\}'\.$/],
    ['a prefix with a pattern', { url, keyPrefix: 'a*' }, /keyPrefix must .* Received: 'a\*'\.$/],
    ['a prefix with a line break', { url, keyPrefix: 'a\n' }, /keyPrefix must .* Received: 'a\\n'\.$/],
    ['a prefix that is too long', { url, keyPrefix: 'a'.repeat(101) }, /keyPrefix must .* Received: 'a{101}'\.$/],
    ['a prefix that is not a string', { url, keyPrefix: 1 }, /keyPrefix must .* Received: 1\.$/],
    ['no time for an operation', { url, operationTimeoutMs: 0 }, /operationTimeoutMs must .* Received: 0\.$/],
    ['endless operations', { url, operationTimeoutMs: Infinity }, /operationTimeoutMs must .* Received: Infinity\.$/],
    [
      'a time that no timer has',
      { url, operationTimeoutMs: 2 ** 31 },
      /operationTimeoutMs must .* Received: 2147483648\.$/,
    ],
    ['a time that is not a number', { url, operationTimeoutMs: '9' }, /operationTimeoutMs must .* Received: '9'\.$/],
  ])('NST-02 rejects %s', (_, options, named) => {
    const make = () => redisAdapter(options as RedisAdapterOptions);

    expect(make).toThrow(SessionsConfigurationError);
    expect(make).toThrow(named);
  });

  it('NST-05 NST-22 names the unreachable server, without a password', async () => {
    const server = `127.0.0.1:${await portOfNobody()}/2`;
    const store = redisAdapter({ url: `redis://desk:hunter2@${server}` });
    const error = await rejection(store.init!(), StoreUnavailableError);
    expect(error.message).toContain(`The Redis store at ${server} could not be reached: `);
    expect(error.message).not.toMatch(/desk|hunter2/);
  });

  it('NST-02 accepts a prefix of any allowed characters', () => {
    expect(() => redisAdapter({ url, keyPrefix: 'Shop-1._:' + 'a'.repeat(91) })).not.toThrow();
  });
});
