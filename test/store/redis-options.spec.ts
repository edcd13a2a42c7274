import { SessionsConfigurationError, StoreUnavailableError } from 'nestjs-agent-sessions';
import { portOfNobody } from '../support/port-of-nobody.js';
import { rejection } from '../support/running-application.js';
import { redisAdapter, type RedisAdapterOptions } from 'nestjs-agent-sessions/redis';

const url = 'redis://localhost:6379';

describe('the options of redisAdapter', () => {
  it.each<[string, unknown, string]>([
    ['neither client nor url', {}, 'client or url'],
    ['both', { client: {}, url }, 'client or url'],
    ['an empty url', { url: '' }, 'redisAdapter: url is empty; give it a URL'],
    ['a url of nobody', { url: undefined }, 'redisAdapter: url is undefined; give it a URL'],
    ['an unknown key', { url, prefix: 'shop' }, 'redisAdapter: prefix is not a known key. There are: client, url, '],
    ['a url that is none', { url: 6379 }, 'url is 6379'],
    ['a client that is none', { client: { get: () => {} } }, 'client is'],
    ['an empty prefix', { url, keyPrefix: '' }, "keyPrefix is ''"],
    ['a prefix with a hash tag', { url, keyPrefix: '{a}' }, "keyPrefix is '{a}'"],
    ['a prefix with a pattern', { url, keyPrefix: 'a*' }, "keyPrefix is 'a*'"],
    ['a prefix with a line break', { url, keyPrefix: 'a\n' }, "keyPrefix is 'a\\n'"],
    ['a prefix that is too long', { url, keyPrefix: 'a'.repeat(101) }, 'keyPrefix is'],
    ['a prefix that is no text', { url, keyPrefix: 1 }, 'keyPrefix is 1'],
    ['no time for an operation', { url, operationTimeoutMs: 0 }, 'operationTimeoutMs is 0'],
    ['endless operations', { url, operationTimeoutMs: Infinity }, 'operationTimeoutMs is Infinity'],
    ['a time that no timer has', { url, operationTimeoutMs: 2 ** 31 }, 'operationTimeoutMs is 2147483648'],
    ['a time that is no number', { url, operationTimeoutMs: '9' }, "operationTimeoutMs is '9'"],
  ])('NST-02 refuses %s', (_, options, named) => {
    const make = () => redisAdapter(options as RedisAdapterOptions);

    expect(make).toThrow(SessionsConfigurationError);
    expect(make).toThrow(named);
  });

  it('NST-05 NST-22 names the server that is not there, and no password', async () => {
    const server = `127.0.0.1:${await portOfNobody()}/2`;
    const store = redisAdapter({ url: `redis://desk:hunter2@${server}` });
    const error = await rejection(store.init!(), StoreUnavailableError);
    expect(error.message).toContain(`The Redis store at ${server} could not be reached: `);
    expect(error.message).not.toMatch(/desk|hunter2/);
  });

  it('NST-02 takes a prefix of any allowed characters', () => {
    expect(() => redisAdapter({ url, keyPrefix: 'Shop-1._:' + 'a'.repeat(91) })).not.toThrow();
  });
});
