import fc from 'fast-check';
import {
  defineOrchestrator,
  NothingToUndoError,
  type OrchestratorDefinition,
  type OrchestratorHandle,
  reply,
} from 'nestjs-agent-sessions';
import { type Application, LIVE_STORES, rejection, startApplication } from '../support/running-application.js';

interface State {
  readonly said: readonly string[];
}

/** How many messages each orchestrator sees. */
const WINDOWS = { desk: 3, sales: 100 } as const;
type Speaker = keyof typeof WINDOWS;

/** `session` and `at` choose among those that are there then. */
type Action =
  | { readonly type: 'say'; readonly by: Speaker; readonly session: number }
  | { readonly type: 'undo'; readonly by: Speaker; readonly session: number }
  | { readonly type: 'fork'; readonly by: Speaker; readonly session: number; readonly at: number };

const by = fc.constantFrom<Speaker>('desk', 'desk', 'sales');
const session = fc.nat(5);
const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ type: fc.constant('say' as const), by, session }) },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('undo' as const), by, session }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('fork' as const), by, session, at: fc.nat(20) }) },
);

describe.each(LIVE_STORES)('time travel over $name', ({ name, open }) => {
  it('BOT-25 BOT-52 matches a model of plain lists for turns, undos and forks in any order', async () => {
    const seen: string[][] = [];
    const speakers = { desk: speaker('desk', seen), sales: speaker('sales', seen) };
    const app = await startApplication({ adapter: open(), orchestrators: Object.values(speakers) });
    const handles = {
      desk: app.handle<State>(speakers.desk),
      sales: app.handle<State>(speakers.sales),
    };
    const numRuns = name === 'memory' ? 200 : 8;
    await fc.assert(
      fc.asyncProperty(fc.array(action, { minLength: 5, maxLength: 25 }), async (actions) => {
        const sessions = [new SessionModel(await app.session())];
        for (const [step, each] of actions.entries()) {
          const model = sessions[each.session % sessions.length];
          const handle = handles[each.by];
          if (each.type === 'say') {
            const text = `${each.by} ${step}`;
            const expected = model.view(each.by).slice(-WINDOWS[each.by]);
            await handle.execute(text, { sessionId: model.id });
            model.say(each.by, text);
            expect(seen.at(-1)).toEqual(expected);
          } else if (each.type === 'undo') {
            const possible = model.undo(each.by);
            if (possible) await handle.undo(model.id);
            else await rejection(handle.undo(model.id), NothingToUndoError);
          } else if (model.checkpoints(each.by) > 0) {
            const atTurn = each.at % model.checkpoints(each.by);
            const { id } = await handle.fork(model.id, { atTurn });
            sessions.push(model.fork(each.by, atTurn, id));
          }
          await expectAsIn(handle, each.by, model);
        }
        for (const model of sessions) {
          expect(await logOf(app, model.id)).toEqual(model.log.map(({ text }) => text));
          for (const speaks of ['desk', 'sales'] as const) await expectAsIn(handles[speaks], speaks, model);
        }
      }),
      { numRuns, endOnFailure: name !== 'memory' },
    );
  }, 120_000);
});

interface Spoken {
  readonly by: Speaker;
  readonly text: string;
}

/** The model of an orchestrator after one of its checkpoints. */
interface Standing {
  /** The states to go back to, the present one last; each with what its turn said. */
  readonly states: readonly { readonly said: readonly string[]; readonly spoken: readonly Spoken[] }[];
  readonly hidden: ReadonlySet<Spoken>;
  /** How much of the log there was before the orchestrator's next turn. */
  readonly end?: number;
}

const NOTHING: Standing = { states: [{ said: [], spoken: [] }], hidden: new Set() };

class SessionModel {
  readonly log: Spoken[] = [];
  private readonly history: Record<Speaker, Standing[]> = { desk: [], sales: [] };

  constructor(readonly id: string) {}

  checkpoints(speaks: Speaker): number {
    return this.history[speaks].length;
  }

  state(speaks: Speaker): readonly string[] {
    return this.latest(speaks).states.at(-1)!.said;
  }

  view(speaks: Speaker): string[] {
    const { hidden } = this.latest(speaks);
    return this.log.filter((spoken) => !hidden.has(spoken)).map(({ text }) => text);
  }

  say(speaks: Speaker, text: string): void {
    const history = this.history[speaks];
    const end = this.log.length;
    for (const [index, standing] of history.entries()) history[index] = { end, ...standing };
    const { states, hidden } = this.latest(speaks);
    const spoken = [text, `to ${text}`].map((each) => ({ by: speaks, text: each }));
    this.log.push(...spoken);
    history.push({ states: [...states, { said: [...states.at(-1)!.said, text], spoken }], hidden });
  }

  undo(speaks: Speaker): boolean {
    const { states, hidden } = this.latest(speaks);
    if (states.length === 1) return false;
    const { spoken } = states.at(-1)!;
    this.history[speaks].push({ states: states.slice(0, -1), hidden: new Set([...hidden, ...spoken]) });
    return true;
  }

  fork(speaks: Speaker, at: number, id: string): SessionModel {
    const { states, hidden, end = this.log.length } = this.history[speaks][at];
    const forked = new SessionModel(id);
    forked.log.push(...this.log.slice(0, end).filter((spoken) => !hidden.has(spoken)));
    forked.history[speaks].push({ states: [{ said: states.at(-1)!.said, spoken: [] }], hidden: new Set() });
    return forked;
  }

  private latest(speaks: Speaker): Standing {
    return this.history[speaks].at(-1) ?? NOTHING;
  }
}

function speaker(name: Speaker, seen: string[][]): OrchestratorDefinition {
  return defineOrchestrator<State>({
    name,
    initialState: () => ({ said: [] }),
    historyWindow: WINDOWS[name],
    keepCheckpoints: 'all',
    intents: {
      answer: ({ state, history, input }) => {
        seen.push(history.map(({ content }) => content as string));
        return reply(`to ${input.text}`, { state: { said: [...state.said, input.text] } });
      },
    },
  }) as unknown as OrchestratorDefinition;
}

async function expectAsIn(handle: OrchestratorHandle<State>, speaks: Speaker, model: SessionModel): Promise<void> {
  const [latest] = await handle.history(model.id, { limit: 1 });
  expect(latest?.state.said ?? []).toEqual(model.state(speaks));
  expect(latest?.turnIndex ?? -1).toBe(model.checkpoints(speaks) - 1);
}

async function logOf(app: Application, sessionId: string): Promise<string[]> {
  return (await app.adapter.conversations.page(sessionId)).map(({ content }) => content as string);
}
