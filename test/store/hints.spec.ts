import { Logger } from '@nestjs/common';
import { type ClaimedTurn, SessionStore, type Turn } from 'nestjs-agent-sessions';
import { eventually } from '../support/eventually.js';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';
import { STORES } from '../support/stores.js';

describe.each(STORES)('hints of the store: $name', ({ open }) => {
  it('TRN-10 a listener that throws harms neither the write nor other listeners', async () => {
    Logger.overrideLogger(false);
    const store = open().adapter;
    await store.init?.();
    await new SessionStore(store.sessions).create({ id: 's', userId: 'ann' });
    await store.turns.accept(turnRequest('first'));
    const heard: string[] = [];
    store.hints.subscribe(() => {
      throw new Error('a listener of the application');
    });
    store.hints.subscribe((turnId) => heard.push(turnId));

    expect((await store.turns.cancel('first', 'cancel')).turn.status).toBe('cancelled');
    await eventually(() => heard.length > 0);
    expect([...new Set(heard)]).toEqual(['first']);
    expect(await store.turns.get('first')).toMatchObject({ status: 'cancelled' });
    await store.close?.();
  });

  it('TRN-10 brings the turn that this process has settled, where reading it again would be a round trip', async () => {
    Logger.overrideLogger(false);
    const store = open().adapter;
    await store.init?.();
    await new SessionStore(store.sessions).create({ id: 's', userId: 'ann' });
    await store.turns.accept(turnRequest('first'));
    const { hold } = (await store.turns.claim('s', claimRequest('a'))) as ClaimedTurn;
    const brought: (Turn | undefined)[] = [];
    store.hints.subscribe((_, turn) => brought.push(turn));

    const { turn } = await store.turns.settle(hold, { status: 'completed', messages: [], keepCheckpoints: 'all' });
    expect(brought.filter((each) => each !== undefined)).toEqual(store.hints.reach === 'store' ? [turn] : []);
    await store.close?.();
  });
});
