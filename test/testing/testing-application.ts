import { SessionsTestingModule, type SessionsTestingOptions } from 'nestjs-agent-sessions/testing';

const running = new Set<SessionsTestingModule>();

/** An application that is closed after the test at the latest. */
export async function create(options?: SessionsTestingOptions): Promise<SessionsTestingModule> {
  const app = await SessionsTestingModule.create(options);
  running.add(app);
  return app;
}

afterEach(async () => {
  await Promise.all([...running].map((app) => app.close()));
  running.clear();
});
