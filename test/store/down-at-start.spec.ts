import { randomBytes } from 'node:crypto';
import { defineOrchestrator, reply, SessionsConfigurationError, StoreUnavailableError } from 'nestjs-agent-sessions';
import { resolveOptions } from '../../lib/module/sessions.settings.js';
import { capturingLogger } from '../support/capturing-logger.js';
import { eventually } from '../support/eventually.js';
import { rejection, startApplication } from '../support/running-application.js';
import { describeServers } from '../support/servers.js';
import { adapterOf, optionsOn, type StoreOptions } from '../support/stores.js';
import { TcpProxy } from '../support/tcp-proxy.js';

const desk = defineOrchestrator({ name: 'desk', intents: { answer: () => reply('Done.') } });

it('DAY-06 opens the store up to ten times by default, three seconds apart', () => {
  expect(resolveOptions({}).storeAttempts).toEqual({ count: 10, delayMs: 3000 });
});

describeServers('a server that is down at the start', (server) => {
  let proxy: TcpProxy;
  let store: StoreOptions;

  beforeEach(async () => {
    proxy = await TcpProxy.start(server.url);
    store = optionsOn({ ...server, url: proxy.url }, `t${randomBytes(6).toString('hex')}_`);
    proxy.cut();
  });

  afterEach(() => proxy.stop());

  it('DAY-06 starts the application when it is up, with a log line for each attempt', async () => {
    const { lines, logger } = capturingLogger();
    const failed = () => lines.filter((line) => line.includes('The next one follows in 20 ms.'));
    const starting = startApplication({
      adapter: adapterOf(store),
      orchestrators: [desk],
      logger,
      retryAttempts: 100_000,
      retryDelayMs: 20,
    });
    await eventually(() => failed().length >= 2, { limitMs: 30_000 });
    proxy.restore();
    const app = await starting;

    expect(failed()[1]).toMatch(
      /^error The \w+ store at 127\.0\.0\.1:\d+\S* could not be (opened|reached).* This was attempt 2 of 100000\. /,
    );
    const { reply: text } = await app.handle(desk).execute('hi', { sessionId: await app.session() });
    expect(text).toBe('Done.');
  });

  it('DAY-06 ends the start after the last attempt', async () => {
    const { lines, logger } = capturingLogger();
    const starting = startApplication({ adapter: adapterOf(store), logger, retryAttempts: 3, retryDelayMs: 1 });
    await rejection(starting, StoreUnavailableError);
    expect(lines.filter((line) => line.includes('This was attempt'))).toEqual([
      expect.stringContaining('This was attempt 1 of 3.'),
      expect.stringContaining('This was attempt 2 of 3.'),
    ]);
  });

  it('DAY-06 FIX-61 ends the start at once if the server rejects the password', async () => {
    const { lines, logger } = capturingLogger();
    const url = new URL(server.url);
    [url.username, url.password] = ['nobody', 'hunter2'];
    const adapter = adapterOf(optionsOn({ ...server, url: url.href }, 'unused_'));
    const error = await rejection(startApplication({ adapter, logger }), SessionsConfigurationError);

    expect(error.message).toMatch(/The .*server at \S+ rejects the connection.* Check the user/);
    expect(error.message).not.toContain('hunter2');
    expect(lines.filter((line) => line.includes('This was attempt'))).toEqual([]);
  });
});
