import { again, type Scenario, USUAL } from './scenario.js';

export const notifications: Scenario = {
  name: 'notifications',
  about: 'all data of the queue is deleted repeatedly, and lanes get unnecessary notifications',
  stores: ['redis', 'postgres'],
  environment: () => ({ load: USUAL }),
  run: async (environment, random, signal) => {
    const { place } = environment;
    const lose = again(
      signal,
      () => random.int(100, 1500),
      async () => {
        environment.fault('lose notifications', place.name);
        await place.loseNotifications();
      },
    );
    const repeat = again(
      signal,
      () => random.int(10, 100),
      async () => place.notify([...environment.sessions, ...environment.sessions].filter(() => random.chance(0.5))),
    );
    await Promise.all([lose, repeat]);
  },
};
