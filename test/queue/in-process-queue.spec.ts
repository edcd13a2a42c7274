import { setImmediate as nextRound, setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { InProcessQueue } from '../../lib/queue/in-process/in-process-queue.js';
import { eventually } from '../support/eventually.js';
import { type Gate, gate } from '../support/running-application.js';

describe('InProcessQueue', () => {
  it('TRN-20 visits each notified session once, in the order of the notifications', async () => {
    const { queue, visits } = await visited(1);
    await Promise.all(['a', 'b', 'a', 'c', 'b'].map((sessionId) => queue.notify(sessionId)));
    await eventually(() => visits.length >= 4);
    await queue.close();
    // 'a' was notified again during its visit.
    expect(visits).toEqual(['a', 'b', 'c', 'a']);
  });

  it('TRN-20 visits a session once at a time, and others in parallel up to the concurrency', async () => {
    const gates = new Map<string, Gate>();
    const { queue, visits, running } = await visited(2, (sessionId) => gates.get(sessionId)?.pass());
    for (const sessionId of ['a', 'b', 'c']) gates.set(sessionId, gate());
    for (const sessionId of ['a', 'a', 'b', 'c']) await queue.notify(sessionId);
    await nextRound();
    expect([...running]).toEqual(['a', 'b']);

    gates.get('b')?.open();
    await eventually(() => running.has('c'));
    expect([...running]).toEqual(['a', 'c']);
    gates.get('a')?.open();
    gates.get('c')?.open();
    await eventually(() => visits.length === 4 && running.size === 0);
    expect(visits).toEqual(['a', 'b', 'c', 'a']);
  });

  it('TRN-04 moves a repeatedly notified session to the back each time', async () => {
    const { queue, visits } = await visited(1, (sessionId) => {
      if (sessionId === 'busy' && visits.length < 20) void queue.notify('busy');
    });
    await Promise.all(['busy', 'a', 'b', 'c'].map((sessionId) => queue.notify(sessionId)));
    await eventually(() => ['a', 'b', 'c'].every((sessionId) => visits.includes(sessionId)));
    expect(visits.slice(0, 4)).toEqual(['busy', 'a', 'b', 'c']);
  });

  it('FIX-83 visits overdue sessions in turn with the others, and both in the order of their notifications', async () => {
    const { pass, open } = gate();
    const { queue, visits } = await visited(1, () => pass());
    await queue.notify('running');
    for (const sessionId of ['a', 'b', 'c', 'd']) await queue.notify(sessionId);
    for (const sessionId of ['late', 'later', 'b']) await queue.notify(sessionId, 0, true);
    // It keeps its place.
    await queue.notify('later');
    expect(queue.reserve('new')).toBeNull();
    open();
    await eventually(() => visits.length === 7);
    expect(visits).toEqual(['running', 'late', 'a', 'later', 'b', 'c', 'd']);
  });

  it('TRN-20 does not lose a notification during the visit', async () => {
    const { pass, open } = gate();
    const { queue, visits } = await visited(1, () => pass());
    await queue.notify('a');
    await nextRound();
    expect(visits).toEqual(['a']);
    for (let i = 0; i < 3; i += 1) await queue.notify('a');
    open();
    await eventually(() => visits.length === 2);
    await queue.close();
    expect(visits).toEqual(['a', 'a']);
  });

  it('TRN-20 delivers delayed notifications on time, and once for the earliest of several', async () => {
    const { queue, visits } = await visited(1);
    const notifiedAt = performance.now();
    await queue.notify('a', 3_600_000);
    await queue.notify('a', 40);
    await queue.notify('a', 7_200_000);
    await queue.notify('b');
    await eventually(() => visits.length === 2);
    expect(performance.now() - notifiedAt).toBeGreaterThanOrEqual(39);
    expect(visits).toEqual(['b', 'a']);
  });

  it('TRN-20 does not delay an immediate notification because of a delayed one', async () => {
    const { queue, visits } = await visited(1);
    await queue.notify('a', 30);
    await queue.notify('a');
    await eventually(() => visits.length === 1);
    await eventually(() => visits.length === 2);
  });

  it('TRN-20 keeps notifications until process is called', async () => {
    const queue = new InProcessQueue(4);
    await queue.notify('a');
    await queue.notify('b', 1);
    await delay(5);
    const visits: string[] = [];
    await queue.process(async (sessionId) => void visits.push(sessionId));
    await eventually(() => visits.length === 2);
    expect(visits.sort()).toEqual(['a', 'b']);
  });

  it('TRN-20 starts no visit while paused, and continues after resume', async () => {
    const { queue, visits } = await visited(4);
    await queue.pause();
    for (const sessionId of ['a', 'b']) await queue.notify(sessionId);
    await queue.notify('c', 1);
    await delay(5);
    await nextRound();
    expect(visits).toEqual([]);
    await queue.resume();
    await eventually(() => visits.length === 3);
  });

  it('TRN-14 close waits for running visits, and starts no more', async () => {
    const { pass, open } = gate();
    const { queue, visits } = await visited(1, () => pass());
    await queue.notify('runs');
    await queue.notify('waits');
    await queue.notify('later', 1);
    await nextRound();
    let closed = false;
    const closing = queue.close().then(() => (closed = true));
    await delay(5);
    expect(closed).toBe(false);
    open();
    await closing;
    await queue.notify('too late');
    await delay(5);
    expect(visits).toEqual(['runs']);
  });

  it('TRN-20 reserves a slot for a visit without a notification, which counts like a notified one', async () => {
    const { queue, visits, running, visit } = await visited(2, (sessionId) => gates.get(sessionId)?.pass());
    const gates = new Map(['kept', 'notified', 'waits'].map((sessionId) => [sessionId, gate()]));
    const kept = queue.reserve('kept');
    await queue.notify('notified');
    await queue.notify('waits');
    await nextRound();
    expect(visits).toEqual(['notified']);
    expect(queue.reserve('no room')).toBeNull();

    kept?.visit(() => visit('kept'));
    await eventually(() => running.has('kept'));
    gates.get('kept')?.open();
    await eventually(() => running.has('waits'));
    expect([...running]).toEqual(['notified', 'waits']);
    for (const { open } of gates.values()) open();
  });

  it('TRN-20 frees a released slot', async () => {
    const { queue, visits } = await visited(1);
    for (let n = 0; n < 3; n += 1) {
      queue.reserve('left')?.release();
      await queue.notify(`notified ${n}`);
      await eventually(() => visits.length === n + 1);
      await nextRound();
    }
    expect(visits).toEqual(['notified 0', 'notified 1', 'notified 2']);
  });

  it('TRN-20 reserves no slot before process is called or while paused', async () => {
    const queue = new InProcessQueue(1);
    expect(queue.reserve('a')).toBeNull();
    await queue.process(async () => {});
    await queue.pause();
    expect(queue.reserve('a')).toBeNull();
    await queue.resume();
    expect(queue.reserve('a')).not.toBeNull();
  });

  it('TRN-20 continues the visit of a session with a notification at its end, unless another session waits', async () => {
    const { queue, visits, visit } = await visited(1);
    const ending = queue.reserve('a');
    ending?.visit(async () => {
      await visit('a');
      const following = queue.reserve('a');
      expect(queue.reserve('a')).toBeNull();
      following?.visit(async () => {
        await visit('a again');
        await queue.notify('b');
        expect(queue.reserve('a')).toBeNull();
        await visit('a at last');
      });
    });
    await eventually(() => visits.length === 4);
    expect(visits).toEqual(['a', 'a again', 'a at last', 'b']);
  });

  it('TRN-20 allows a visit to reserve its slot again after a release', async () => {
    const { queue, visits, visit } = await visited(1);
    queue.reserve('a')?.visit(async () => {
      for (let n = 0; n < 3; n += 1) {
        queue.reserve('a')?.release();
        await rounds(2);
      }
      queue.reserve('a')?.visit(() => visit('a'));
    });
    await eventually(() => visits.length === 1);
  });

  it('TRN-14 close waits for visits that have a slot and have not started', async () => {
    const { queue, visits, visit } = await visited(1);
    const kept = queue.reserve('kept');
    let closed = false;
    const closing = queue.close().then(() => (closed = true));
    await delay(5);
    expect(closed).toBe(false);
    kept?.visit(() => visit('kept'));
    await closing;
    expect(visits).toEqual(['kept']);
  });

  it('TRN-20 continues after a handler throws', async () => {
    const { queue, visits } = await visited(1, (sessionId) => {
      if (sessionId === 'bad') throw new Error('test failure');
    });
    for (const sessionId of ['bad', 'good', 'bad']) await queue.notify(sessionId);
    await eventually(() => visits.length === 3);
    expect(visits).toEqual(['bad', 'good', 'bad']);
  });

  it('TRN-20 follows every notification with a later visit, one per session at a time, with any use of slots', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 3 }),
        fc.array(action, { maxLength: 40 }),
        async (concurrency, actions) => {
          let clock = 0;
          const notifiedAt = new Map<string, number>();
          const visitedAt = new Map<string, number>();
          const { queue, running, close } = await visited(concurrency, async (sessionId, visits) => {
            visitedAt.set(sessionId, (clock += 1));
            await rounds(visits.length % 4);
            if (visits.length % 5 === 0) throw new Error('test failure');
          });
          for (const { kind, sessionId, wait } of actions) {
            if (kind === 'pause') await queue.pause();
            if (kind === 'resume') await queue.resume();
            if (kind === 'notify' || kind === 'later') {
              notifiedAt.set(sessionId, (clock += 1));
              await queue.notify(sessionId, kind === 'later' ? 1 : 0);
            }
            const place = kind === 'visit' || kind === 'leave' ? queue.reserve(sessionId) : null;
            await rounds(wait);
            // It may overlap with the visit that ends; the ledger keeps the turns of the lane separate.
            if (kind === 'visit') place?.visit(() => rounds(wait));
            else place?.release();
          }
          await queue.resume();
          await eventually(() =>
            [...notifiedAt].every(([sessionId, at]) => (visitedAt.get(sessionId) ?? 0) > at && running.size === 0),
          );
          await close();
        },
      ),
      { numRuns: 100 },
    );
  });
});

const action = fc.record({
  kind: fc.constantFrom('notify', 'notify', 'notify', 'later', 'visit', 'visit', 'leave', 'pause', 'resume'),
  sessionId: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
  wait: fc.nat(2),
});

/** A queue that records visits. `close` fails after concurrent visits of one session, or more than the concurrency. */
async function visited(
  concurrency: number,
  handle: (sessionId: string, visits: readonly string[]) => Promise<void> | void = () => {},
) {
  const queue = new InProcessQueue(concurrency);
  const visits: string[] = [];
  const running = new Set<string>();
  const broken: string[] = [];
  const visit = async (sessionId: string): Promise<void> => {
    if (running.has(sessionId)) broken.push(`${sessionId} is visited twice at once`);
    if (running.size >= concurrency) broken.push(`${running.size + 1} visits at once`);
    running.add(sessionId);
    visits.push(sessionId);
    try {
      await handle(sessionId, visits);
    } finally {
      running.delete(sessionId);
    }
  };
  await queue.process(visit);
  const close = async (): Promise<void> => {
    await queue.close();
    expect(broken).toEqual([]);
  };
  opened.push(close);
  return { queue, visits, running, visit, close };
}

async function rounds(count: number): Promise<void> {
  for (let i = 0; i < count; i += 1) await nextRound();
}

const opened: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of opened.splice(0)) await close();
});
