import { type ConformanceContext } from '../conformance/target.js';
import { isSame } from './linearizability.js';
import {
  type Driver,
  type Durations,
  type FastCheck,
  MOVED_TIME,
  REAL_TIME,
  type RunBudget,
  type SequentialModel,
  type Specimen,
} from './specimen.js';
import type fc from 'fast-check';

/** Two subjects, because operations on one must not affect the other. */
const SUBJECTS = 2;
const MAX_COMMANDS = 60;

/**
 * Runs random operations in sequence. After each one its outcome and all reads of the store must match the
 * model. On a failure fast-check prints the seed and the shortest failing commands.
 */
export async function runSequentially<Action, Operation>(
  fc: FastCheck,
  specimen: Specimen<Action, Operation>,
  context: ConformanceContext,
  { numRuns, isSpent }: RunBudget,
): Promise<void> {
  const durations = context.moveClock ? MOVED_TIME : REAL_TIME;
  const commands = fc.commands(commandsOf(fc, specimen, durations), { size: 'max', maxCommands: MAX_COMMANDS });
  const asTheModelSays = fc.asyncProperty(commands, async (commands) => {
    if (isSpent()) return;
    const real = await openWorld(specimen, context);
    const model = real.drivers.map(() => specimen.model(durations));
    await fc.asyncModelRun(() => ({ model, real }), commands);
    const subjects = real.drivers.map(({ id }, n) => [id, model[n]] as const);
    if (context.moveClock) await specimen.afterwards?.(context, subjects);
  });
  await fc.assert(asTheModelSays, { numRuns });
}

interface World<Action, Operation> {
  readonly specimen: Specimen<Action, Operation>;
  readonly context: ConformanceContext;
  readonly drivers: readonly Driver<Action, Operation>[];
}

type Models<Operation> = SequentialModel<Operation>[];
type Command<Action, Operation> = fc.AsyncCommand<Models<Operation>, World<Action, Operation>>;

async function openWorld<Action, Operation>(
  specimen: Specimen<Action, Operation>,
  context: ConformanceContext,
): Promise<World<Action, Operation>> {
  const drivers: Driver<Action, Operation>[] = [];
  for (let n = 0; n < subjectsOf(specimen); n += 1) drivers.push(await specimen.open(context));
  return { specimen, context, drivers };
}

function commandsOf<Action, Operation>(
  fc: FastCheck,
  specimen: Specimen<Action, Operation>,
  durations: Durations,
): fc.Arbitrary<Command<Action, Operation>>[] {
  const act = fc
    .tuple(fc.nat(subjectsOf(specimen) - 1), specimen.actions(fc, durations))
    .map(([subject, action]) => new Act<Action, Operation>(subject, action));
  if (!durations.exact) return [act];
  const elapse = fc.constantFrom(...durations.passing).map((ms) => new Elapse<Action, Operation>(ms));
  return [act, act, act, act, elapse];
}

/** Runs one operation on one subject, then compares all reads of both. */
class Act<Action, Operation> implements Command<Action, Operation> {
  constructor(
    private readonly subject: number,
    private readonly action: Action,
  ) {}

  check(): boolean {
    return true;
  }

  async run(models: Models<Operation>, { drivers, specimen, context }: World<Action, Operation>): Promise<void> {
    const compare = async (subject: number, operation: Operation): Promise<void> => {
      const seen = await drivers[subject].send(context.adapter, operation);
      const expected = models[subject].apply(operation, seen);
      // The test runner's comparison is slow, but prints a readable difference.
      if (!isSame(seen, expected)) expect(seen).toEqual(expected);
    };
    const operation = drivers[this.subject].plan(this.action);
    if (!operation) return;
    await compare(this.subject, operation);
    for (const subject of drivers.keys()) for (const read of specimen.reads) await compare(subject, read);
  }

  toString(): string {
    return `subject ${this.subject}: ${JSON.stringify(this.action)}`;
  }
}

class Elapse<Action, Operation> implements Command<Action, Operation> {
  constructor(private readonly ms: number) {}

  check(): boolean {
    return true;
  }

  async run(models: Models<Operation>, { context }: World<Action, Operation>): Promise<void> {
    await context.moveClock?.(this.ms);
    for (const model of models) model.elapse(this.ms);
  }

  toString(): string {
    return `${this.ms} ms pass`;
  }
}

function subjectsOf<Action, Operation>({ alone }: Specimen<Action, Operation>): number {
  return alone ? 1 : SUBJECTS;
}
