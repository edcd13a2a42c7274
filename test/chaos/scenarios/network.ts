import { type TcpProxy } from '../../support/tcp-proxy.js';
import { type Random } from '../random.js';
import { type Environment } from '../environment/environment.js';
import { again, rested, type Scenario, USUAL } from './scenario.js';

/** Network faults between a process and a server. */
const FAULTS: Readonly<Record<string, (wire: TcpProxy, random: Random) => Promise<unknown>>> = {
  cut: (wire, random) => {
    wire.cut();
    return rested(random.int(0, 1500));
  },
  delay: (wire, random) => {
    wire.latencyMs = random.int(20, 400);
    return rested(random.int(200, 1500));
  },
  // These connections become silent without an error.
  'half-open': async (wire) => wire.freeze(),
  truncate: async (wire) => wire.truncate(),
  'hold answers': (wire, random) => {
    wire.holdAnswers();
    return rested(random.int(100, 1500));
  },
  'lose answers': async (wire, random) => {
    wire.swallowAnswers();
    await rested(random.int(50, 500));
    wire.cut();
  },
};

export const network: Scenario = {
  name: 'network',
  about:
    'connections of a process to the store or to the queue are cut, delayed, half-open, truncated, or lose answers',
  stores: ['redis', 'postgres'],
  environment: () => ({ load: USUAL, proxies: true }),
  // Two at a time, so that the store of one and the queue of another fail together.
  run: async (environment, random, signal) => {
    await Promise.all([disturb(environment, random.fork(), signal), disturb(environment, random.fork(), signal)]);
  },
};

function disturb(environment: Environment, random: Random, signal: AbortSignal): Promise<void> {
  return again(
    signal,
    () => random.int(50, 500),
    async () => {
      const actor = random.pick(environment.actors);
      const wires = environment.wires.get(actor);
      if (!wires) throw new Error(`Actor ${actor.name} has no proxies.`);
      const to = random.pick(['store', 'queue'] as const);
      const fault = random.pick(Object.keys(FAULTS));
      environment.fault(`${fault}: ${to}`, actor.process);
      await FAULTS[fault](wires[to], random);
      wires[to].restore();
    },
  );
}
