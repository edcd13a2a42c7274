import 'reflect-metadata';
import { memoryAdapter, SessionsModule, SessionStore } from 'nestjs-agent-sessions';
import { capturingLogger } from '../support/capturing-logger.js';
import { type Running, TRANSPORTS } from './transports.js';

describe.each(TRANSPORTS)('requests without a user in $name', ({ name, start, userAt }) => {
  const { lines, logger } = capturingLogger();
  let running: Running;
  let sessionId: string;

  beforeAll(async () => {
    // Use the default resolver in every transport.
    running = await start({ imports: [SessionsModule.forRoot({ adapter: memoryAdapter(), sweep: false })] });
    running.app.useLogger(logger);
    ({ id: sessionId } = await running.app.get(SessionStore).create({ userId: 'ann' }));
  });

  afterAll(() => running.close());

  it('NST-11 logs once that an authentication guard is missing, except for anonymous handlers', async () => {
    expect(await running.ask('anonymous', { sessionId })).toMatchObject({ ok: { id: sessionId } });
    expect(lines).toEqual([]);

    for (let time = 0; time < 2; time += 1) {
      expect(await running.ask('chat', { sessionId })).toMatchObject({ error: { code: 'UNAUTHENTICATED' } });
    }
    expect(lines).toEqual([expect.stringMatching(/^warn \w+Handlers\.chat: the request is not authenticated\. /)]);
    expect(lines[0]).toContain(userAt);
  });

  // The default resolver finds no user in microservice messages.
  if (name.startsWith('microservices')) return;
  it('NST-11 rejects a user without an id, and logs the reason', async () => {
    const fresh = await start({ imports: [SessionsModule.forRoot({ adapter: memoryAdapter(), sweep: false })] });
    const { lines: said, logger: listening } = capturingLogger();
    fresh.app.useLogger(listening);
    try {
      const user = 'sub:ann';
      expect(await fresh.ask('chat', { sessionId, user })).toMatchObject({ error: { code: 'UNAUTHENTICATED' } });
      expect(said).toEqual([
        expect.stringMatching(/The user at [\w. ]+ has no id\. Map the user with the option principal/),
      ]);
      expect(said[0]).not.toContain('sub:ann');
    } finally {
      await fresh.close();
    }
  });
});
