import { setTimeout as delay } from 'node:timers/promises';
import { createSessionStore, memoryAdapter } from 'nestjs-agent-sessions';
import { LaneBell } from '../../lib/turn/lane-bell.js';
import { LaneReconciler } from '../../lib/turn/lane-reconciler.service.js';
import { type TurnRuntime } from '../../lib/turn/turn-runtime.js';
import { turnRequest } from '../support/ledger-requests.js';

it('TRN-21 a slow queue does not keep the reconciler from looking again', async () => {
  let now = Date.now();
  const adapter = memoryAdapter({ clock: () => now });
  const sessions = createSessionStore({ adapter: adapter.sessions });
  const lanes: string[] = [];
  for (let n = 0; n < 100; n += 1) {
    const { id: sessionId } = await sessions.create({ userId: 'ann' });
    await adapter.turns.accept(turnRequest(`turn-${n}`, { sessionId }));
    lanes.push(sessionId);
  }
  now += 1001;
  const rung: string[] = [];
  const ring = async (sessionId: string): Promise<void> => {
    await delay(50);
    rung.push(sessionId);
  };
  const reconciler = new LaneReconciler({ ledger: adapter.turns, bell: new LaneBell({ ring }) } as TurnRuntime);

  const startedAt = performance.now();
  expect(await reconciler.ringDue()).toBe(100);

  expect(performance.now() - startedAt).toBeLessThan(1000);
  expect(rung.sort()).toEqual(lanes.sort());
});
