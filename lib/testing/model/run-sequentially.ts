import { type ConformanceContext } from '../conformance/target.js';
import { type Driver, type FastCheck, MOVED_TIME, REAL_TIME, type SequentialModel, type Specimen } from './specimen.js';
import type fc from 'fast-check';

/** What is done to one session must not show in the other. */
const SESSIONS = 2;
const MAX_COMMANDS = 60;

/**
 * Random operations one after the other: what each gives, and all that the store shows after it, must be as the model
 * has it. On a failure fast-check tells the seed and the shortest commands that show it.
 */
export async function runSequentially<Action, Operation>(
  fc: FastCheck,
  specimen: Specimen<Action, Operation>,
  context: ConformanceContext,
  numRuns: number,
): Promise<void> {
  const commands = fc.commands(commandsOf(fc, specimen, context), { size: 'max', maxCommands: MAX_COMMANDS });
  const asTheModelSays = fc.asyncProperty(commands, async (commands) => {
    const real = await openWorld(specimen, context);
    const model = real.drivers.map(() => specimen.model());
    await fc.asyncModelRun(() => ({ model, real }), commands);
    const sessions = real.drivers.map(({ sessionId }, n) => [sessionId, model[n]] as const);
    if (context.moveClock) await specimen.afterwards?.(context, sessions);
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
  for (let n = 0; n < SESSIONS; n += 1) drivers.push(await specimen.open(context));
  return { specimen, context, drivers };
}

function commandsOf<Action, Operation>(
  fc: FastCheck,
  specimen: Specimen<Action, Operation>,
  context: ConformanceContext,
): fc.Arbitrary<Command<Action, Operation>>[] {
  const durations = context.moveClock ? MOVED_TIME : REAL_TIME;
  const act = fc
    .tuple(fc.nat(SESSIONS - 1), specimen.actions(fc, durations))
    .map(([session, action]) => new Act<Action, Operation>(session, action));
  if (durations.passing.length === 0) return [act];
  const elapse = fc.constantFrom(...durations.passing).map((ms) => new Elapse<Action, Operation>(ms));
  return [act, act, act, act, elapse];
}

/** Somebody does something to one of the sessions; then all of both is looked at. */
class Act<Action, Operation> implements Command<Action, Operation> {
  constructor(
    private readonly session: number,
    private readonly action: Action,
  ) {}

  check(): boolean {
    return true;
  }

  async run(models: Models<Operation>, { drivers, specimen, context }: World<Action, Operation>): Promise<void> {
    const compare = async (session: number, operation: Operation): Promise<void> => {
      const seen = await drivers[session].send(context.adapter, operation);
      expect(seen).toEqual(models[session].apply(operation, seen));
    };
    const operation = drivers[this.session].plan(this.action);
    if (!operation) return;
    await compare(this.session, operation);
    for (const session of drivers.keys()) for (const read of specimen.reads) await compare(session, read);
  }

  toString(): string {
    return `session ${this.session}: ${JSON.stringify(this.action)}`;
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
