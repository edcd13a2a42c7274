import fc from 'fast-check';
import { type JsonObject, type SessionStateService } from 'nestjs-agent-sessions';
import { mintId } from '../../lib/common/ids.js';
import { STATE_MODULES } from '../../lib/state/state-module.js';
import { statesAfter, TASK_STATES, type TaskState } from '../../lib/state/task.js';
import { describeStores } from '../support/orchestration.js';
import { collect, sessionState } from '../support/session-state.js';

/** The expected state of a session. */
interface Expected {
  conversation: string[];
  tools: Record<string, unknown>;
  task: Record<string, TaskState>;
  flow: Record<string, number[]>;
}

type Module = keyof Expected;

const NOTHING = (): Expected => ({ conversation: [], tools: {}, task: {}, flow: {} });
/** All modules use these names, and the ids of the sessions share a prefix. */
const NAMES = ['a', 'a/b', 'ä', '__proto__', 'completed', 'head'];

type Step =
  | { readonly do: 'say'; readonly text: string }
  | {
      readonly do: 'set' | 'delete' | 'save' | 'forget' | 'create' | 'patch';
      readonly name: string;
      readonly n: number;
    }
  | { readonly do: 'move'; readonly name: string; readonly to: TaskState }
  | { readonly do: 'reset'; readonly modules: readonly Module[]; readonly dryRun: boolean }
  | { readonly do: 'describe' };

const name = fc.constantFrom(...NAMES);
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant('say' as const), text: fc.string({ unit: 'binary-ascii', maxLength: 3 }) }),
  fc.record({
    do: fc.constantFrom(
      'set' as const,
      'patch' as const,
      'delete' as const,
      'save' as const,
      'forget' as const,
      'create' as const,
    ),
    name,
    n: fc.nat(9),
  }),
  fc.record({ do: fc.constant('move' as const), name, to: fc.constantFrom(...TASK_STATES) }),
  fc.record({
    do: fc.constant('reset' as const),
    modules: fc.subarray([...STATE_MODULES], { minLength: 1 }),
    dryRun: fc.boolean(),
  }),
  fc.record({ do: fc.constant('describe' as const) }),
);
const steps = fc.array(fc.record({ session: fc.nat(2), step }), { minLength: 1, maxLength: 25 });

/** Task ids allow fewer characters than names. */
const taskId = (of: string): string => `t${NAMES.indexOf(of)}`;

async function take(state: SessionStateService, id: string, has: Expected, taken: Step): Promise<void> {
  switch (taken.do) {
    case 'say':
      await state.conversation.append(id, [{ role: 'user', content: taken.text }]);
      has.conversation.push(taken.text);
      return;
    case 'set':
      await state.tools.set(id, taken.name, taken.name, { n: taken.n });
      has.tools[toolKey(taken.name)] = { n: taken.n };
      return;
    case 'patch':
      await state.tools.patch(id, taken.name, taken.name, { [`p${taken.n}`]: 1 });
      has.tools[toolKey(taken.name)] = { ...(has.tools[toolKey(taken.name)] as JsonObject), [`p${taken.n}`]: 1 };
      return;
    case 'delete':
      expect(await state.tools.delete(id, taken.name, taken.name)).toBe(toolKey(taken.name) in has.tools);
      delete has.tools[toolKey(taken.name)];
      return;
    case 'save': {
      has.flow[toolKey(taken.name)] = [...(has.flow[toolKey(taken.name)] ?? []), taken.n];
      const version = (await state.flow.save(id, taken.name, taken.n))!.version;
      const versions = await state.flow.versions(id, taken.name);
      expect(versions.map((saved) => version - saved.version).reverse()).toEqual([...versions.keys()]);
      return;
    }
    case 'forget':
      expect(await state.flow.delete(id, taken.name)).toBe(toolKey(taken.name) in has.flow);
      delete has.flow[toolKey(taken.name)];
      return;
    case 'create': {
      const known = taskId(taken.name) in has.task;
      const created = await state.task.create(id, { id: taskId(taken.name) }).catch(() => null);
      expect(created === null).toBe(known);
      has.task[taskId(taken.name)] ??= 'submitted';
      return;
    }
    case 'move': {
      const from = has.task[taskId(taken.name)];
      const legal = from !== undefined && statesAfter(from).includes(taken.to);
      const moved = await state.task.transition(id, taskId(taken.name), taken.to).catch(() => null);
      expect(moved !== null).toBe(legal);
      if (legal) has.task[taskId(taken.name)] = taken.to;
      return;
    }
    case 'reset': {
      const { modules: asked, dryRun } = taken;
      const { cleared } = await state.reset({ sessionId: id, stores: [...asked], dryRun });
      const filled = STATE_MODULES.filter((of) => asked.includes(of) && Object.keys(has[of]).length > 0);
      expect(cleared).toEqual(dryRun ? [] : filled);
      if (!dryRun) Object.assign(has, Object.fromEntries(asked.map((of) => [of, NOTHING()[of]])));
      return;
    }
    case 'describe': {
      const { stores } = await state.describe({ sessionId: id });
      expect(stores.map(({ itemCount }) => itemCount)).toEqual(STATE_MODULES.map((of) => Object.keys(has[of]).length));
    }
  }
}

const toolKey = (of: string): string => `name ${of}`;

/** Reads the whole state of a session through its modules. */
async function found(state: SessionStateService, id: string): Promise<Expected> {
  const tasks = (await state.task.list(id)).items;
  for (const of of TASK_STATES) {
    const marked = (await state.task.list(id, { state: of })).items;
    expect(marked).toEqual(tasks.filter((task) => task.state === of));
  }
  const flows = (await state.flow.list(id)).items;
  const versions = flows.map(async ({ flow }) => {
    const saved = await state.flow.versions(id, flow);
    return [toolKey(flow), saved.map(({ checkpoint }) => checkpoint as number)] as const;
  });
  const exported = await collect(state.conversation.export(id));
  return {
    conversation: exported.map(({ content }) => content as string),
    tools: Object.fromEntries((await state.tools.list(id)).items.map(({ tool, value }) => [toolKey(tool), value])),
    task: Object.fromEntries(tasks.map((task) => [task.id, task.state])),
    flow: Object.fromEntries(await Promise.all(versions)),
  };
}

describeStores('modules of sessions', (store, of) => {
  const runs = of === 'memory' ? 300 : 40;

  it(`STA-02 contain exactly what was written to them, over ${runs} random histories`, async () => {
    const state = sessionState(store());
    await fc.assert(
      fc.asyncProperty(steps, async (history) => {
        const base = mintId();
        const ids = [base, `${base}:a`, `${base}:a:b`];
        const has = ids.map(NOTHING);
        for (const { session, step: taken } of history) await take(state, ids[session], has[session], taken);
        for (const [index, id] of ids.entries()) expect(await found(state, id)).toEqual(has[index]);
      }),
      { numRuns: runs },
    );
  }, 120_000);
});
