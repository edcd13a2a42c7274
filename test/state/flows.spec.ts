import {
  InvalidInputError,
  type SessionStateService,
  StateSerializationError,
  TooLargeError,
} from 'nestjs-agent-sessions';
import { mintId } from '../../lib/common/ids.js';
import { clockGoesOn } from '../support/eventually.js';
import { anyText, describeStores } from '../support/orchestration.js';
import { recordingAdapter } from '../support/recording-adapter.js';
import { rejection } from '../support/running-application.js';
import { collect, sessionState } from '../support/session-state.js';

const NAMESPACE = 'agent-sessions:flow';

describeStores('checkpoints of flows', (store) => {
  let state: SessionStateService;
  let id: string;

  beforeEach(() => {
    state = sessionState(store());
    id = mintId();
  });

  /** The number before a flow's first version: stores may start at any number. */
  let before: number;
  const save = async (n: number, flow = 'onboarding'): Promise<void> => {
    const { version } = (await state.flow.save(id, flow, { n }))!;
    if (n === 1) before = version - 1;
    expect(version).toBe(before + n);
  };
  const saveMany = async (count: number, flow = 'onboarding'): Promise<void> => {
    for (let n = 1; n <= count; n += 1) await save(n, flow);
  };
  const versionsOf = async (flow = 'onboarding'): Promise<number[]> =>
    (await state.flow.versions(id, flow)).map(({ version }) => version - before);
  const range = (from: number, through: number): number[] =>
    Array.from({ length: through - from + 1 }, (_, index) => from + index);

  it('STA-06 saves and loads a checkpoint', async () => {
    const { flow: flows } = state;
    const first = await flows.save(id, 'onboarding', { step: 1 });
    expect(first).toEqual({
      flow: 'onboarding',
      version: expect.any(Number) as number,
      checkpoint: { step: 1 },
      savedAt: anyText(),
    });
    const second = await flows.save(id, 'onboarding', null);
    expect(second).toMatchObject({ version: first!.version + 1, checkpoint: null });
    expect(await flows.load(id, 'onboarding')).toEqual(second);
    expect(await flows.load(id, 'onboarding', first!.version)).toEqual(first);
    expect(await flows.load(id, 'onboarding', first!.version + 2)).toBeNull();
    expect(await flows.load(id, 'onboarding', first!.version - 1)).toBeNull();
    expect(await flows.load(id, 'Onboarding')).toBeNull();
    expect(await flows.load(mintId(), 'onboarding')).toBeNull();
    expect(await flows.versions(id, 'onboarding')).toEqual([first, second]);
  });

  it('STA-06 saves only over the expected version', async () => {
    const { flow: flows } = state;
    expect(await flows.save(id, 'f', 1, { ifVersion: 1 })).toBeNull();
    expect(await flows.load(id, 'f')).toBeNull();
    const { version } = (await flows.save(id, 'f', 1, { ifVersion: 0 }))!;
    expect(await flows.save(id, 'f', 2, { ifVersion: 0 })).toBeNull();
    expect(await flows.save(id, 'f', 2, { ifVersion: version })).toMatchObject({ version: version + 1 });
    expect((await flows.versions(id, 'f')).map((each) => each.version)).toEqual([version, version + 1]);
  });

  it('STA-06 keeps the last 100 versions unchanged', async () => {
    await saveMany(130);
    expect(await versionsOf()).toEqual(range(31, 130));
    for (const n of [31, 50, 121, 122, 129, 130]) {
      const version = before + n;
      expect(await state.flow.load(id, 'onboarding', version)).toMatchObject({ version, checkpoint: { n } });
    }
    for (const n of [1, 30, 131]) expect(await state.flow.load(id, 'onboarding', before + n)).toBeNull();
    // Older versions were deleted, except a few that the next saves delete.
    const kept = await store().state.count({ namespace: NAMESPACE, sessionId: id });
    expect(kept).toBeLessThanOrEqual(101);
    const page = await state.flow.versions(id, 'onboarding', { after: before + 119, limit: 5 });
    expect(page.map(({ version, checkpoint }) => [version - before, checkpoint])).toEqual(
      range(120, 124).map((n) => [n, { n }]),
    );
    const times = (await state.flow.versions(id, 'onboarding')).map(({ savedAt }) => savedAt);
    expect(times).toEqual(times.toSorted());
  });

  it('STA-08 writes only the new checkpoint', async () => {
    await saveMany(60);
    const document = await store().state.get({ namespace: NAMESPACE, scope: '', sessionId: id, key: 'onboarding' });
    expect(document?.batches.length).toBeLessThan(8);
    const calls: string[] = [];
    const counted = sessionState(recordingAdapter(store(), calls));
    for (let n = 0; n < 60; n += 1) await counted.flow.save(id, 'onboarding', { n });
    // One to append the checkpoint, one to archive it, and a few to delete old ones.
    expect(calls.length).toBeLessThan(60 * 3);
  });

  it('STA-06 keeps every version if a process ends between archiving and folding', async () => {
    const stopping = { ...store(), state: Object.create(store().state) as ReturnType<typeof store>['state'] };
    stopping.state.append = async (address, append) => {
      if (append.fold) throw new Error('The process has ended.');
      return store().state.append(address, append);
    };
    const interrupted = sessionState(stopping);
    before = (await interrupted.flow.save(id, 'onboarding', { n: 1 }))!.version - 1;
    for (let n = 2; n <= 12; n += 1) await interrupted.flow.save(id, 'onboarding', { n });
    expect(await versionsOf()).toEqual(range(1, 12));
    for (let n = 13; n <= 20; n += 1) await state.flow.save(id, 'onboarding', { n });
    const versions = await state.flow.versions(id, 'onboarding');
    expect(versions.map(({ version, checkpoint }) => [version - before, checkpoint])).toEqual(
      range(1, 20).map((n) => [n, { n }]),
    );
  });

  it.each([
    ['is deleted', (of: SessionStateService, at: string) => of.flow.delete(at, 'onboarding')],
    ['is reset', (of: SessionStateService, at: string) => of.reset({ sessionId: at, stores: ['flow'] })],
    [
      'is reset and saved again',
      async (of: SessionStateService, at: string) => {
        await of.reset({ sessionId: at });
        await clockGoesOn();
        await of.flow.save(at, 'onboarding', 'new');
      },
    ],
  ])('STA-06 leaves no archived versions of a flow that %s during archiving', async (_, meanwhile) => {
    const racing = { ...store(), state: Object.create(store().state) as ReturnType<typeof store>['state'] };
    let raced = false;
    racing.state.append = async (address, append) => {
      if (address.scope !== '' && !raced) {
        raced = true;
        await meanwhile(state, id);
      }
      return store().state.append(address, append);
    };
    const flows = sessionState(racing).flow;
    for (let n = 1; n <= 8; n += 1) await flows.save(id, 'onboarding', { n });
    expect(raced).toBe(true);
    const left = await store().state.list({ namespace: NAMESPACE, sessionId: id, limit: 100 });
    expect(left.filter(({ scope }) => scope !== '')).toEqual([]);
    expect(await state.flow.versions(id, 'onboarding')).toHaveLength(left.length);
  });

  it('STA-06 gives each concurrent save its own version', async () => {
    const saved = await Promise.all(range(1, 40).map((n) => state.flow.save(id, 'onboarding', { n })));
    const numbers = saved.map((each) => each!.version).toSorted((a, b) => a - b);
    expect(numbers).toEqual(range(numbers[0], numbers[0] + 39));
    const versions = await state.flow.versions(id, 'onboarding');
    expect(versions).toEqual(saved.toSorted((a, b) => a!.version - b!.version));
  });

  it('STA-06 lists flows with their latest checkpoint, page by page', async () => {
    await saveMany(20, 'b');
    await saveMany(1, 'a');
    await saveMany(2, 'ä');
    const first = await state.flow.list(id, { limit: 2 });
    expect(first.items.map(({ flow, checkpoint }) => [flow, checkpoint])).toEqual([
      ['a', { n: 1 }],
      ['b', { n: 20 }],
    ]);
    const second = await state.flow.list(id, { limit: 2, after: first.next! });
    expect(second.items.map(({ flow }) => flow)).toEqual(['ä']);
    expect(second.next).toBeUndefined();
    expect(await state.flow.list(mintId())).toEqual({ items: [] });
  });

  it('STA-06 deletes a flow with all its versions, and no other', async () => {
    await saveMany(20);
    const last = before + 20;
    await saveMany(10, 'other');
    expect(await versionsOf('other')).toEqual(range(1, 10));
    expect(await state.flow.delete(id, 'onboarding')).toBe(true);
    expect(await state.flow.delete(id, 'onboarding')).toBe(false);
    expect(await versionsOf()).toEqual([]);
    expect(await state.flow.load(id, 'onboarding', last)).toBeNull();
    expect(await versionsOf('other')).toEqual(range(1, 10));
    await saveMany(12);
    expect(before).toBeGreaterThanOrEqual(last);
    expect(await versionsOf()).toEqual(range(1, 12));
  });

  it('STA-06 does not show versions of a deleted flow in a new one of the same name', async () => {
    for (let n = 1; n <= 20; n += 1) await state.flow.save(id, 'onboarding', { old: n });
    // The process ended before it deleted the versions.
    await store().state.delete({ namespace: NAMESPACE, scope: '', sessionId: id, key: 'onboarding' });
    expect(await versionsOf()).toEqual([]);
    expect(await state.flow.load(id, 'onboarding', 3)).toBeNull();
    for (let n = 1; n <= 12; n += 1) {
      await state.flow.save(id, 'onboarding', { n });
      const versions = await state.flow.versions(id, 'onboarding');
      expect(versions.map(({ checkpoint }) => checkpoint)).toEqual(range(1, n).map((of) => ({ n: of })));
    }
  });

  it('STA-10 exports every version', async () => {
    await saveMany(12);
    const exported = await collect(state.export(id));
    expect(exported.map(({ store: of, item }) => [of, item])).toEqual(
      (await state.flow.versions(id, 'onboarding')).map((version) => ['flow', version]),
    );
  });

  it('STA-06 accepts JSON checkpoints up to the size limit', async () => {
    const { flow: flows } = sessionState(store(), { maxBytes: 10 });
    expect(await flows.save(id, 'f', 'x'.repeat(8))).not.toBeNull();
    await rejection(flows.save(id, 'f', 'x'.repeat(9)), TooLargeError);
    await rejection(flows.save(id, 'f', new Map()), StateSerializationError);
    expect(await flows.versions(id, 'f')).toHaveLength(1);
  });

  it.each<[string, (of: SessionStateService['flow'], at: string) => Promise<unknown>]>([
    ['an empty session id', (flows) => flows.save('', 'f', 1)],
    ['an empty name', (flows, at) => flows.save(at, '', 1)],
    ['a version of 0', (flows, at) => flows.load(at, 'f', 0)],
    ['a version that is not a number', (flows, at) => flows.load(at, 'f', '1' as never)],
    ['an unknown option', (flows, at) => flows.save(at, 'f', 1, { version: 1 } as never)],
    ['a page after an invalid cursor', (flows, at) => flows.list(at, { after: '{}' })],
  ])('STA-09 rejects %s, and writes nothing', async (_, call) => {
    await rejection(call(state.flow, id), InvalidInputError);
    expect(await store().state.count({ namespace: NAMESPACE, sessionId: id })).toBe(0);
  });
});
