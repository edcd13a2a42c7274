import { type SessionStateService } from 'nestjs-agent-sessions';
import { mintId } from '../../lib/common/ids.js';
import { describeStores } from '../support/orchestration.js';
import { recordingAdapter } from '../support/recording-adapter.js';
import { sessionState } from '../support/session-state.js';

/** The store calls of each operation. */
const CALLS: Record<string, [(of: SessionStateService, id: string) => Promise<unknown>, string]> = {
  'tools.get': [({ tools }, id) => tools.get(id, 'search', 'k'), 'get'],
  'tools.set': [({ tools }, id) => tools.set(id, 'search', 'k', {}), 'set'],
  'tools.patch': [({ tools }, id) => tools.patch(id, 'search', 'k', { a: 1 }), 'append'],
  'tools.increment': [({ tools }, id) => tools.increment(id, 'search', 'n'), 'append'],
  'tools.list': [({ tools }, id) => tools.list(id), 'list'],
  'tools.delete': [({ tools }, id) => tools.delete(id, 'search', 'k'), 'delete'],
  'task.create': [({ task }, id) => task.create(id, { id: 't' }), 'set append set'],
  'task.get': [({ task }, id) => task.get(id, 't'), 'get'],
  'task.transition': [({ task }, id) => task.transition(id, 't', 'working'), 'get set append set delete'],
  'task.setFlowState': [({ task }, id) => task.setFlowState(id, 't', 1), 'append'],
  'task.list': [({ task }, id) => task.list(id), 'list'],
  'task.delete': [({ task }, id) => task.delete(id, 't'), 'get delete delete'],
  'flow.save': [({ flow }, id) => flow.save(id, 'f', 1), 'append'],
  'flow.load': [({ flow }, id) => flow.load(id, 'f'), 'get'],
  'flow.versions': [({ flow }, id) => flow.versions(id, 'f'), 'get'],
  'flow.list': [({ flow }, id) => flow.list(id), 'list'],
  'flow.delete': [({ flow }, id) => flow.delete(id, 'f'), 'delete list'],
};

describeStores('the store calls of the modules', (store) => {
  let calls: string[];
  const recorded = (): SessionStateService => sessionState(recordingAdapter(store(), (calls = [])));

  it('STA-08 makes the same number of calls per operation, whatever the session contains', async () => {
    const state = recorded();
    const [empty, full] = [mintId(), mintId()];
    for (let n = 0; n < 120; n += 1) {
      await state.tools.set(full, 'other', `${n}`, n);
      await state.task.create(full);
      await state.flow.save(full, `other ${n}`, n);
    }
    for (const id of [empty, full]) {
      for (const [name, [call, expected]] of Object.entries(CALLS)) {
        calls.length = 0;
        await call(state, id);
        expect([name, calls]).toEqual([name, expected.split(' ').map((operation) => `state.${operation}`)]);
      }
    }
  });

  it('STA-08 writes only the document of an operation (known failure: the whole namespace was rewritten)', async () => {
    const state = recorded();
    const id = mintId();
    for (let n = 0; n < 50; n += 1) await state.tools.set(id, 'other', `${n}`, 'x'.repeat(10_000));
    const before = await store().state.list({ namespace: 'agent-sessions:tools', sessionId: id, limit: 100 });
    await state.tools.increment(id, 'search', 'n');
    const after = await store().state.list({ namespace: 'agent-sessions:tools', sessionId: id, limit: 100 });
    expect(after.slice(0, 50)).toEqual(before);
    expect(after).toHaveLength(51);
  });

  it('STA-08 queries each module at most a few times in the control plane, whatever it contains', async () => {
    const state = recorded();
    const id = mintId();
    for (let n = 0; n < 60; n += 1) {
      await state.tools.set(id, 'search', `${n}`, n);
      await state.conversation.append(id, [{ role: 'user', content: 'hi' }]);
    }
    calls.length = 0;
    await state.describe({ sessionId: id });
    expect(calls.toSorted()).toEqual([
      'conversations.window',
      'state.count',
      'state.count',
      'state.count',
      'state.get',
    ]);
    calls.length = 0;
    await state.describe({ sessionId: id, includeData: true, limit: 5 });
    expect(calls).toHaveLength(9);
    calls.length = 0;
    await state.reset({ sessionId: id, stores: ['tools', 'flow'] });
    expect(calls).toEqual(['state.reset']);
    await state.reset({ sessionId: id });
    expect(calls).toEqual(['state.reset', 'state.get', 'state.reset']);
  });

  it('STA-02 isolates modules that use the same names (known failure: modules shared a key)', async () => {
    const state = recorded();
    const id = mintId();
    const name = 'same';
    await state.tools.set(id, name, name, 'tool');
    await state.task.create(id, { id: name, flowState: 'task' });
    await state.flow.save(id, name, 'flow');
    await state.conversation.append(id, [{ role: 'user', content: 'said', id: name }]);
    await state.tools.delete(id, name, name);
    expect(await state.task.get(id, name)).toMatchObject({ flowState: 'task' });
    expect(await state.flow.load(id, name)).toMatchObject({ checkpoint: 'flow' });
    expect(await state.conversation.list(id)).toMatchObject([{ content: 'said' }]);
    await state.flow.delete(id, name);
    await state.task.delete(id, name);
    expect((await state.describe({ sessionId: id })).stores.map(({ itemCount }) => itemCount)).toEqual([1, 0, 0, 0]);
  });
});
