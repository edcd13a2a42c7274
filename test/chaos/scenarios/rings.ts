import { again, type Scenario, USUAL } from './scenario.js';

export const rings: Scenario = {
  name: 'rings',
  about: 'everything that the queue keeps is deleted, again and again, and lanes are rung for without need',
  stores: ['redis', 'postgres'],
  stage: () => ({ load: USUAL }),
  play: async (stage, random, signal) => {
    const { place } = stage;
    const lose = again(
      signal,
      () => random.int(100, 1500),
      async () => {
        stage.fault('lose rings', place.name);
        await place.loseRings();
      },
    );
    const repeat = again(
      signal,
      () => random.int(10, 100),
      async () => place.ring([...stage.sessions, ...stage.sessions].filter(() => random.chance(0.5))),
    );
    await Promise.all([lose, repeat]);
  },
};
