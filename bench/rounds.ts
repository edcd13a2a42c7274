/** Something that is measured beside others. */
export interface Contestant<Measure extends string> {
  /** Before each round; not measured. */
  readonly prepare?: () => Promise<void>;
  /** Does a slice of a round. @returns what each quantity of it was */
  readonly run: () => Promise<Readonly<Record<Measure, number>>>;
  /** After each round: whether what was done is right; not measured. @throws WrongAnswerError */
  readonly verify?: () => Promise<void>;
}

export interface Plan {
  readonly rounds: number;
  /** In every round each contestant runs so many slices, by turns, so that all of them see the same weather. */
  readonly slices: number;
}

/** For each contestant and quantity: the mean of the slices of each round. A round before the first one is not counted. */
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
      // Nobody is always the first one.
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
