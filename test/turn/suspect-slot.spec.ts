import { SuspectSlot } from '../../lib/turn/suspect-slot.js';

describe('the slot for turns that were lost twice or more', () => {
  it('FIX-83 is handed to the oldest turn that waits, one after the other', async () => {
    const slot = new SuspectSlot();
    const order: string[] = [];
    const wait = async (sessionId: string, acceptedAt: string): Promise<void> => {
      if (await slot.wait(sessionId, acceptedAt)) order.push(sessionId);
    };
    expect(slot.tryTake()).toBe(true);
    const waits = [wait('c', '2026-01-03'), wait('a', '2026-01-01'), wait('b', '2026-01-02'), wait('b2', '2026-01-02')];
    expect(slot.tryTake()).toBe(false);
    for (let left = 0; left < waits.length; left += 1) {
      slot.leave();
      await new Promise(setImmediate);
      expect(order).toHaveLength(left + 1);
    }
    slot.leave();
    await Promise.all(waits);
    expect(order).toEqual(['a', 'b', 'b2', 'c']);
    expect(slot.tryTake()).toBe(true);
  });

  it('FIX-83 is waited for once per session, and not when the process stops', async () => {
    const slot = new SuspectSlot();
    slot.tryTake();
    const first = slot.wait('a', '2026-01-01');
    expect(await slot.wait('a', '2026-01-01')).toBe(false);
    slot.close();
    expect(await first).toBe(false);
    slot.leave();
    expect(slot.tryTake()).toBe(false);
    expect(await slot.wait('b', '2026-01-01')).toBe(false);
  });
});
