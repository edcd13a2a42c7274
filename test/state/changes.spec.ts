import fc from 'fast-check';
import { type StateChange, type StateDocument } from 'nestjs-agent-sessions/adapter';
import { archiveChanges, applyFlowChange, checkpointsIn, flowStateChange } from '../../lib/state/flow-change.js';
import { type ApplyEntry, changeBy, foldedBy, foldOf, valueOf } from '../../lib/state/module-document.js';
import { applyTaskChange, type StoredTask, taskStateChanges } from '../../lib/state/task-change.js';
import { applyToolChange, type ToolChange, toolStateChange } from '../../lib/state/tool-entry.js';

const set: ToolChange = { type: 'set', value: 1, secret: false };
const setForAWhile: ToolChange = { ...set, ttlMs: 7 };
const patch: ToolChange = { type: 'patch', patch: { a: 1 }, maxBytes: 100 };
const add: ToolChange = { type: 'increment', by: 1 };
const remove: ToolChange = { type: 'delete' };

describe('the append for changes of a tool entry', () => {
  it.each<[string, ToolChange[], object]>([
    ['appends a write', [set], { initial: null }],
    ['appends a write that expires', [setForAWhile], { initial: null, ttlMs: 7 }],
    ['appends a lasting write over one that expires', [setForAWhile, set], { initial: null }],
    ['keeps the expiry for an increment', [add], { initial: null, keepExpiry: true }],
    [
      'sets an expiry if an increment creates the entry',
      [{ ...add, ttlMs: 9 }, patch],
      { initial: null, ttlMs: 9, keepExpiry: true },
    ],
    [
      'keeps the expiry of a write before an increment',
      [setForAWhile, { ...add, ttlMs: 9 }],
      { initial: null, ttlMs: 7 },
    ],
    ['expires the entry at once for a delete', [remove], { ttlMs: 0 }],
    ['expires the entry at once for a delete after other changes', [set, add, remove], { initial: null, ttlMs: 0 }],
    [
      'sets the expiry of an entry that is created again after a delete',
      [remove, { ...add, ttlMs: 9 }],
      { initial: null, ttlMs: 9 },
    ],
    ['sets no expiry if an entry is created again without one', [remove, patch], { initial: null }],
    ['sets no expiry for a lasting write after a delete', [setForAWhile, remove, set], { initial: null }],
  ])('STA-04 %s', (_, changes, life) => {
    const { name, append } = toolStateChange('search', 'k', changes);
    expect(name).toEqual({ namespace: 'agent-sessions:tools', scope: 'search', key: 'k' });
    expect(append).toEqual({ id: append.id, entries: changes, ...life });
  });
});

describe('the marks of a task', () => {
  const working: StoredTask = {
    state: 'working',
    flowState: null,
    history: [],
    updatedAt: '',
    mark: 'old',
  };
  const places = (changes: readonly StateChange[]): unknown[] =>
    changes.map(({ name: { scope, key }, append: { ttlMs, initial } }) => [scope, key, ttlMs, initial]);
  const go = (from: StoredTask['state'], to: StoredTask['state'], mark: string) =>
    ({ type: 'transition', from, to, mark }) as const;

  it('STA-05 are written for the final state only', () => {
    expect(places(taskStateChanges('t', [{ type: 'create', flowState: 1, mark: 'new' }], null))).toEqual([
      ['', 't', undefined, null],
      ['submitted', 't new', undefined, null],
    ]);
    const through = [
      go('working', 'input-required', 'm1'),
      go('input-required', 'working', 'm2'),
      go('working', 'completed', 'm3'),
    ];
    expect(places(taskStateChanges('t', through, working))).toEqual([
      ['', 't', undefined, undefined],
      ['completed', 't m3', undefined, null],
      ['working', 't old', 0, undefined],
    ]);
    expect(places(taskStateChanges('t', [{ type: 'flow-state', flowState: 2 }], working))).toEqual([
      ['', 't', undefined, undefined],
    ]);
    // The task has another state by now: a transition that no longer applies writes no mark.
    expect(places(taskStateChanges('t', [go('submitted', 'working', 'm1')], working))).toEqual([
      ['', 't', undefined, undefined],
    ]);
  });

  it('STA-05 ignores a transition from another state than the current one', () => {
    expect(applyTaskChange(working, go('submitted', 'canceled', 'm'), 'now')).toBe(working);
    expect(applyTaskChange(working, go('working', 'submitted', 'm'), 'now')).toBe(working);
    expect(applyTaskChange(null, go('working', 'completed', 'm'), 'now')).toBeNull();
    expect(applyTaskChange(working, { type: 'create', flowState: 1, mark: 'm' }, 'now')).toBe(working);
  });
});

const change: fc.Arbitrary<ToolChange> = fc.oneof(
  fc.record({
    type: fc.constant('set' as const),
    value: fc.oneof(fc.nat(9), fc.constant({ a: 1 })),
    secret: fc.boolean(),
  }),
  fc.record({
    type: fc.constant('patch' as const),
    patch: fc.dictionary(fc.constantFrom('a', 'b'), fc.nat(9)),
    unset: fc.subarray(['a', 'c']),
    maxBytes: fc.nat(20),
  }),
  fc.record({ type: fc.constant('increment' as const), by: fc.integer({ min: -9, max: 9 }) }),
  fc.constant(remove),
);

describe('a fold', () => {
  it('STA-04 keeps the value after any changes', () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(change, { minLength: 1, maxLength: 3 }), { minLength: 4, maxLength: 20 }),
        (lists) => {
          const batches = lists.map((entries, n) => ({ id: `b${n}`, at: `t${n}`, entries: entries as never }));
          const document = documentOf(batches);
          const fold = foldOf(document, applyToolChange, { batches: 4, keep: 1 })!;
          const rest = { ...document, value: fold.value, batches: batches.slice(foldedBy(document, fold)) };
          expect(rest.batches).toHaveLength(1);
          expect(valueOf(rest, applyToolChange)).toEqual(valueOf(document, applyToolChange));
          expect(changeBy('b0', rest, applyToolChange)).toBeNull();
        },
      ),
    );
  });

  it('STA-06 stores each version in the flow’s document or beside it, and deletes old ones once', () => {
    const beside = new Map<string, unknown>();
    let document = documentOf([]);
    for (let n = 1; n <= 400; n += 1) {
      const { append } = flowStateChange('f', [{ type: 'save', checkpoint: n }]);
      const batches = [...document.batches, { id: append.id, at: 'now', entries: append.entries }];
      document = { ...document, batches, version: n };
      // Folds are sometimes late, for example under concurrent writes.
      const fold =
        n % 7 === 0 ? foldOf(document, applyFlowChange as ApplyEntry<unknown, unknown>, { batches: 8, keep: 2 }) : null;
      if (fold) {
        for (const { name, append: write } of archiveChanges('f', document, foldedBy(document, fold))) {
          if (write.ttlMs === 0) beside.delete(name.key);
          else beside.set(name.key, write.entries[0]);
        }
        document = { ...document, value: fold.value, batches: document.batches.slice(foldedBy(document, fold)) };
      }
      const here = checkpointsIn(document);
      const all = [
        ...[...beside].toSorted(),
        ...here.map(({ version, checkpoint }) => [version, { checkpoint }] as const),
      ];
      const kept = all.filter(([key]) => Number(key) > n - 100);
      expect(kept.map(([key, stored]) => [Number(key), (stored as { checkpoint: number }).checkpoint])).toEqual(
        Array.from({ length: Math.min(n, 100) }, (_, index) => Math.max(0, n - 100) + index + 1).map((of) => [of, of]),
      );
      expect(beside.size).toBeLessThanOrEqual(120);
    }
  });
});

function documentOf(batches: StateDocument['batches']): StateDocument {
  return { value: null, batches, version: batches.length, createdAt: 'now', accessedAt: 'now' };
}
