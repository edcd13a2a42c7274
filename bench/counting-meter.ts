import { type Meter } from './store-server.js';

type Counters = Readonly<Record<string, number>>;

/** A meter over monotonic counters. */
export class CountingMeter implements Meter {
  constructor(private readonly read: () => Counters | Promise<Counters>) {}

  async measure(work: () => Promise<void>): Promise<Counters> {
    const [first, before] = [await this.read(), await this.read()];
    await work();
    const after = await this.read();
    const cost = (name: string): number => after[name] - before[name] - (before[name] - first[name]);
    return Object.fromEntries(Object.keys(after).map((name) => [name, Math.max(0, cost(name))]));
  }
}
