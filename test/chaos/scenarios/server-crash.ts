import { again, rested, type Scenario, USUAL } from './scenario.js';

export const serverCrash: Scenario = {
  name: 'server-crash',
  about:
    'Redis is killed (SIGKILL), PostgreSQL shut down at once or restarted, every few seconds, and comes back with its data',
  stores: ['redis', 'postgres'],
  environment: () => ({ load: USUAL }),
  run: (environment, random, signal) =>
    again(
      signal,
      () => random.int(500, 2000),
      async () => {
        const { server, name } = environment.place;
        const crashes = name === 'redis' || random.chance(0.5);
        await environment.outage(
          crashes ? 'crash' : 'restart',
          async () => (crashes ? server?.crash() : server?.stop()),
          async () => void (await rested(random.int(0, 1500))),
        );
      },
    ),
};
