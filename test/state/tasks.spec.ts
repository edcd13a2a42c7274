import { InvalidInputError, type SessionStateService, TaskError, TooLargeError } from 'nestjs-agent-sessions';
import { mintId } from '../../lib/common/ids.js';
import { TASK_STATES, type TaskState } from '../../lib/state/task.js';
import { anyText, describeStores } from '../support/orchestration.js';
import { recordingAdapter } from '../support/recording-adapter.js';
import { rejection } from '../support/running-application.js';
import { sessionState } from '../support/session-state.js';

/** The allowed transitions. */
const GRAPH: Record<TaskState, TaskState[]> = {
  submitted: ['working', 'failed', 'canceled'],
  working: ['input-required', 'completed', 'failed', 'canceled'],
  'input-required': ['working', 'failed', 'canceled'],
  completed: [],
  failed: [],
  canceled: [],
};

/** The transitions that lead to each state. */
const WAYS: Record<TaskState, TaskState[]> = {
  submitted: [],
  working: ['working'],
  'input-required': ['working', 'input-required'],
  completed: ['working', 'completed'],
  failed: ['failed'],
  canceled: ['canceled'],
};

describeStores('tasks of sessions', (store) => {
  let state: SessionStateService;
  let id: string;

  beforeEach(() => {
    state = sessionState(store());
    id = mintId();
  });

  const taskIn = async (way: readonly TaskState[]): Promise<string> => {
    const { id: taskId } = await state.task.create(id);
    for (const to of way) await state.task.transition(id, taskId, to);
    return taskId;
  };
  const idsIn = async (of: TaskState): Promise<string[]> =>
    (await state.task.list(id, { state: of })).items.map((task) => task.id);

  it('STA-05 creates and returns a task', async () => {
    const { task: tasks } = state;
    const task = await tasks.create(id, { id: 'refund-7', flowState: { step: 1 } });
    expect(task).toEqual({
      sessionId: id,
      id: 'refund-7',
      state: 'submitted',
      flowState: { step: 1 },
      history: [{ state: 'submitted', at: task.createdAt }],
      createdAt: anyText(),
      updatedAt: task.createdAt,
      version: expect.any(Number) as number,
    });
    expect(await tasks.get(id, 'refund-7')).toEqual(task);
    expect(await tasks.get(mintId(), 'refund-7')).toBeNull();
    expect((await tasks.create(id)).flowState).toBeNull();
    await rejection(tasks.create(id, { id: 'refund-7' }), TaskError, 'TASK_CONFLICT');
    expect(await tasks.get(id, 'refund-7')).toEqual(task);
    expect(await idsIn('submitted')).toHaveLength(2);
  });

  it.each(TASK_STATES.flatMap((from) => TASK_STATES.map((to) => [from, to] as const)))(
    'STA-05 follows the transition graph from %s to %s',
    async (from, to) => {
      const taskId = await taskIn(WAYS[from]);
      const before = (await state.task.get(id, taskId))!;
      const change = state.task.transition(id, taskId, to, { flowState: 'changed' });
      if (GRAPH[from].includes(to)) {
        const after = await change;
        expect(after).toMatchObject({ state: to, flowState: 'changed', version: before.version + 1 });
        expect(after.history).toEqual([...before.history, { state: to, at: after.updatedAt }]);
        expect(await state.task.get(id, taskId)).toEqual(after);
      } else {
        const error = await rejection(change, TaskError, 'TASK_TRANSITION');
        expect(error).toMatchObject({ sessionId: id, taskId, from, to, allowed: GRAPH[from] });
        expect(await state.task.get(id, taskId)).toEqual(before);
      }
    },
  );

  it('STA-05 keeps the last 50 states', async () => {
    const taskId = await taskIn(['working']);
    const before = (await state.task.get(id, taskId))!;
    for (let n = 0; n < 40; n += 1) {
      await state.task.transition(id, taskId, 'input-required');
      await state.task.transition(id, taskId, 'working');
    }
    const { history, version, createdAt } = (await state.task.get(id, taskId))!;
    expect(version).toBe(before.version + 80);
    expect(history).toHaveLength(50);
    expect(history.slice(-2).map((entry) => entry.state)).toEqual(['input-required', 'working']);
    const times = history.map(({ at }) => at);
    expect(times).toEqual(times.toSorted());
    expect(createdAt <= times[0]).toBe(true);
  });

  it('STA-05 sets a flow state during concurrent changes', async () => {
    const { task: tasks } = state;
    const taskId = await taskIn(['working']);
    await Promise.all([tasks.setFlowState(id, taskId, { n: 1 }), tasks.transition(id, taskId, 'input-required')]);
    expect(await tasks.get(id, taskId)).toMatchObject({ state: 'input-required', flowState: { n: 1 } });
    expect(await tasks.setFlowState(id, taskId, null)).toMatchObject({ flowState: null });
    await rejection(tasks.setFlowState(id, 'unknown', 1), TaskError, 'TASK_NOT_FOUND');
    await rejection(tasks.transition(id, 'unknown', 'working'), TaskError, 'TASK_NOT_FOUND');
    expect(await tasks.get(id, 'unknown')).toBeNull();
    expect(await idsIn('working')).toEqual([]);
  });

  it('STA-05 lists all tasks and those of a state, page by page', async () => {
    const names = ['e', 'b', 'd', 'a', 'c'];
    for (const name of names) await state.task.create(id, { id: name });
    for (const name of ['a', 'c', 'e']) await state.task.transition(id, name, 'working');
    await state.task.transition(id, 'c', 'completed');
    expect(await idsIn('submitted')).toEqual(['b', 'd']);
    expect(await idsIn('working')).toEqual(['a', 'e']);
    expect(await idsIn('completed')).toEqual(['c']);
    expect(await idsIn('failed')).toEqual([]);

    const first = await state.task.list(id, { limit: 3 });
    expect(first.items.map((task) => task.id)).toEqual(['a', 'b', 'c']);
    const second = await state.task.list(id, { limit: 3, after: first.next! });
    expect(second.items.map((task) => task.id)).toEqual(['d', 'e']);
    expect(second.next).toBeUndefined();
    const working = await state.task.list(id, { state: 'working', limit: 1 });
    expect(working.items.map((task) => task.id)).toEqual(['a']);
    expect((await state.task.list(id, { state: 'working', after: working.next! })).items[0]).toEqual(
      await state.task.get(id, 'e'),
    );
    expect(await state.task.list(mintId(), { state: 'working' })).toEqual({ items: [] });
  });

  it('STA-05 reads only one page for a list by state, whatever the number of tasks', async () => {
    for (let n = 0; n < 40; n += 1) await state.task.create(id, { id: `t${10 + n}` });
    await state.task.transition(id, 't20', 'working');
    const calls: string[] = [];
    const counted = sessionState(recordingAdapter(store(), calls));
    expect((await counted.task.list(id, { state: 'working' })).items).toHaveLength(1);
    expect(calls).toEqual(['state.list', 'state.get']);
    calls.length = 0;
    expect((await counted.task.list(id, { state: 'submitted', limit: 3 })).items).toHaveLength(3);
    expect(calls).toEqual(['state.list', 'state.get', 'state.get', 'state.get']);
  });

  it('STA-05 lists a task in its stored state if a transition stopped after writing its mark', async () => {
    const { state: documents } = store();
    const taskId = await taskIn(['working']);
    const mark = { namespace: 'agent-sessions:task', scope: 'completed', sessionId: id, key: `${taskId} ${mintId()}` };
    await documents.set(mark, null);
    expect(await idsIn('completed')).toEqual([]);
    expect(await idsIn('working')).toEqual([taskId]);
    await state.task.transition(id, taskId, 'completed');
    expect(await idsIn('completed')).toEqual([taskId]);
    expect(await idsIn('working')).toEqual([]);
  });

  it('STA-05 STA-23 lists a task by state if it is created during a reset of its module', async () => {
    const racing = { ...store(), state: Object.create(store().state) as ReturnType<typeof store>['state'] };
    let resets = 0;
    racing.state.append = async (address, append) => {
      if (resets++ === 0) await state.reset({ sessionId: id, stores: ['task'] });
      return store().state.append(address, append);
    };
    const { id: taskId } = await sessionState(racing).task.create(id);
    expect(resets).toBe(1);
    expect(await idsIn('submitted')).toEqual([taskId]);
  });

  it('STA-05 deletes orphaned marks during a list once they are an hour old', async () => {
    const { state: documents } = store();
    const taskId = await taskIn([]);
    const place = { namespace: 'agent-sessions:task', scope: 'working', sessionId: id };
    await documents.set({ ...place, key: `${taskId} ${mintId()}` }, null);
    await state.task.list(id, { state: 'working' });
    expect(await documents.count(place)).toBe(1);
    const later = { ...store(), state: Object.create(documents) as typeof documents };
    later.state.get = async (address, access) => {
      const found = await documents.get(address, access);
      return found && { ...found, createdAt: new Date(Date.parse(found.createdAt) - 3_601_000).toISOString() };
    };
    const { task: tasks } = sessionState(later);
    expect((await tasks.list(id, { state: 'submitted' })).items.map((task) => task.id)).toEqual([taskId]);
    expect(await tasks.list(id, { state: 'working' })).toEqual({ items: [] });
    expect(await documents.count(place)).toBe(0);
    expect(await idsIn('submitted')).toEqual([taskId]);
  });

  it('STA-05 reads at most 20 tasks at a time for a list by state', async () => {
    for (let n = 0; n < 50; n += 1) await state.task.create(id);
    let [now, most] = [0, 0];
    const counting = { ...store(), state: Object.create(store().state) as ReturnType<typeof store>['state'] };
    counting.state.get = async (address, access) => {
      most = Math.max(most, (now += 1));
      return store()
        .state.get(address, access)
        .finally(() => (now -= 1));
    };
    const { items } = await sessionState(counting).task.list(id, { state: 'submitted' });
    expect(items).toHaveLength(50);
    expect(most).toBe(20);
  });

  it('STA-05 leaves no mark of rejected changes', async () => {
    const taskId = await taskIn(['working']);
    await Promise.allSettled(
      Array.from({ length: 8 }, (_, n) => state.task.transition(id, taskId, n % 2 ? 'completed' : 'failed')),
    );
    await state.task.create(id, { id: taskId }).catch(() => undefined);
    const places = await store().state.list({ namespace: 'agent-sessions:task', sessionId: id, limit: 100 });
    const { state: end } = (await state.task.get(id, taskId))!;
    expect(places.map(({ scope }) => scope)).toEqual(['', end]);
  });

  it('STA-05 accepts only one of concurrent transitions that exclude each other', async () => {
    const taskId = await taskIn(['working']);
    const ends = ['completed', 'failed', 'canceled'] as const;
    const outcomes = await Promise.allSettled(
      Array.from({ length: 12 }, (_, n) => state.task.transition(id, taskId, ends[n % 3])),
    );
    const won = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
    expect(won).toHaveLength(1);
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: 'TASK_TRANSITION' });
    }
    expect(await state.task.get(id, taskId)).toEqual(won[0]);
    for (const end of ends) expect(await idsIn(end)).toEqual(won[0].state === end ? [taskId] : []);
  });

  it('STA-05 loses none of many concurrent transitions', async () => {
    const taskId = await taskIn(['working']);
    const before = (await state.task.get(id, taskId))!;
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, (_, n) => state.task.transition(id, taskId, n % 2 ? 'working' : 'input-required')),
    );
    const done = outcomes.filter((outcome) => outcome.status === 'fulfilled').length;
    const { version, history, state: end } = (await state.task.get(id, taskId))!;
    expect(version).toBe(before.version + done);
    const states = history.map((entry) => entry.state);
    for (const [index, each] of states.slice(1).entries()) expect(GRAPH[states[index]]).toContain(each);
    expect(await idsIn(end)).toEqual([taskId]);
  });

  it('STA-05 deletes a task with its mark', async () => {
    const taskId = await taskIn(['working']);
    expect(await state.task.delete(id, taskId)).toBe(true);
    expect(await state.task.delete(id, taskId)).toBe(false);
    expect(await state.task.get(id, taskId)).toBeNull();
    expect(await store().state.count({ namespace: 'agent-sessions:task', sessionId: id })).toBe(0);
    expect(await state.task.create(id, { id: taskId })).toMatchObject({ state: 'submitted' });
  });

  it('STA-05 accepts flow states up to the size limit', async () => {
    const { task: tasks } = sessionState(store(), { maxBytes: 10 });
    const large = 'x'.repeat(9);
    await rejection(tasks.create(id, { id: 't', flowState: large }), TooLargeError);
    expect(await tasks.get(id, 't')).toBeNull();
    await tasks.create(id, { id: 't', flowState: 'x'.repeat(8) });
    await rejection(tasks.setFlowState(id, 't', large), TooLargeError);
    await rejection(tasks.transition(id, 't', 'working', { flowState: large }), TooLargeError);
    expect(await tasks.get(id, 't')).toMatchObject({ state: 'submitted' });
  });

  it.each<[string, (of: SessionStateService['task'], at: string) => Promise<unknown>]>([
    ['an empty session id', (tasks) => tasks.create('')],
    ['an empty task id', (tasks, at) => tasks.create(at, { id: '' })],
    ['a task id with a space', (tasks, at) => tasks.create(at, { id: 'a b' })],
    ['an unknown key', (tasks, at) => tasks.create(at, { state: 'working' } as never)],
    ['an unknown state', (tasks, at) => tasks.transition(at, 't', 'done' as never)],
    ['a state named like a property of every object', (tasks, at) => tasks.transition(at, 't', 'constructor' as never)],
    ['a list of an unknown state', (tasks, at) => tasks.list(at, { state: 'done' as never })],
    ['a page after an invalid cursor', (tasks, at) => tasks.list(at, { after: '7' })],
  ])('STA-09 rejects %s, and writes nothing', async (_, call) => {
    await rejection(call(state.task, id), InvalidInputError);
    expect(await store().state.count({ namespace: 'agent-sessions:task', sessionId: id })).toBe(0);
  });
});
