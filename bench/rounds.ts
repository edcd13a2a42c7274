/** A contestant of a measurement. */
export interface Contestant<Measure extends string> {
  /** Runs before each round, without being measured. */
  readonly prepare?: () => Promise<void>;
  /** Runs a slice of a round. @returns its quantities */
  readonly run: () => Promise<Readonly<Record<Measure, number>>>;
  /** Checks the results after each round, without being measured. @throws WrongAnswerError */
  readonly verify?: () => Promise<void>;
}

export interface Plan {
  readonly rounds: number;
  /** The number of slices per round. Contestants alternate, so that all run under the same conditions. */
  readonly slices: number;
}

/** Returns the mean of the slices of each round, per contestant and quantity. A warm-up round does not count. */
export async function interleave<Name extends string, Measure extends string>(
  { rounds, slices }: Plan,
  contestants: Readonly<Record<Name, Contestant<Measure>>>,
): Promise<Record<Name, Record<Measure, number[]>>> {
  const names = Object.keys(contestants) as Name[];
  const results = Object.fromEntries(names.map((name) => [name, {}])) as Record<Name, Record<Measure, number[]>>;
  for (let round = 0; round <= rounds; round += 1) {
    for (const name of names) await contestants[name].prepare?.();
    const sums = await runSlices(slices, round, names, (name) => contestants[name].run());
    for (const name of names) await contestants[name].verify?.();
    if (round === 0) continue;
    for (const name of names) {
      for (const [measure, sum] of Object.entries<number>(sums[name])) {
        (results[name][measure as Measure] ??= []).push(sum / slices);
      }
    }
  }
  return results;
}

async function runSlices<Name extends string, Measure extends string>(
  slices: number,
  round: number,
  names: readonly Name[],
  run: (name: Name) => Promise<Readonly<Record<Measure, number>>>,
): Promise<Record<Name, Record<Measure, number>>> {
  const sums = Object.fromEntries(names.map((name) => [name, {}])) as Record<Name, Record<Measure, number>>;
  for (let slice = 0; slice < slices; slice += 1) {
    for (let place = 0; place < names.length; place += 1) {
      // A different contestant starts each time.
      const name = names[(place + slice + round) % names.length];
      for (const [measure, value] of Object.entries<number>(await run(name))) {
        const sum = sums[name];
        sum[measure as Measure] = (sum[measure as Measure] ?? 0) + value;
      }
    }
  }
  return sums;
}

/** @returns milliseconds */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}
