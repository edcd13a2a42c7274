import { SessionsTestingModule, type SessionsTestingOptions } from 'nestjs-agent-sessions/testing';

/** Suppresses logs, because deliberate failures would fill the output. */
const QUIET = { log: () => {}, warn: () => {}, error: () => {} };

const running = new Set<SessionsTestingModule>();

/** Creates an application that is closed after the test at the latest. */
export async function create(options?: SessionsTestingOptions): Promise<SessionsTestingModule> {
  const app = await SessionsTestingModule.create({
    ...options,
    override: (builder) => {
      builder.setLogger(QUIET);
      return options?.override?.(builder);
    },
  });
  running.add(app);
  return app;
}

afterEach(async () => {
  await Promise.all([...running].map((app) => app.close()));
  running.clear();
});
