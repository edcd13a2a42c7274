import { Logger } from '@nestjs/common';
import { SessionStore, type Turn } from 'nestjs-agent-sessions';
import { type ClaimedTurn } from 'nestjs-agent-sessions/adapter';
import { eventually } from '../support/eventually.js';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';
import { STORES } from '../support/stores.js';

describe.each(STORES)('changes of the store: $name', ({ open }) => {
  it('TRN-10 a throwing listener does not affect the write or other listeners', async () => {
    Logger.overrideLogger(false);
    const store = open().adapter;
    await store.init?.();
    await new SessionStore(store.sessions).create({ id: 's', userId: 'ann' });
    await store.turns.accept(turnRequest('first'));
    const heard: string[] = [];
    store.changes.subscribe(() => {
      throw new Error('a listener of the application');
    });
    store.changes.subscribe((turnId) => heard.push(turnId));

    expect((await store.turns.cancel('first', 'cancel')).turn.status).toBe('cancelled');
    await eventually(() => heard.length > 0);
    expect([...new Set(heard)]).toEqual(['first']);
    expect(await store.turns.get('first')).toMatchObject({ status: 'cancelled' });
    await store.close?.();
  });

  it('TRN-10 delivers the turn that this process has settled if a read would be a round trip', async () => {
    Logger.overrideLogger(false);
    const store = open().adapter;
    await store.init?.();
    await new SessionStore(store.sessions).create({ id: 's', userId: 'ann' });
    await store.turns.accept(turnRequest('first'));
    const { hold } = (await store.turns.claim('s', claimRequest('a'))) as ClaimedTurn;
    const brought: (Turn | undefined)[] = [];
    store.changes.subscribe((_, turn) => brought.push(turn));

    const { turn } = await store.turns.settle(hold, { status: 'completed', messages: [], keepCheckpoints: 'all' });
    expect(brought.filter((each) => each !== undefined)).toEqual(store.changes.reach === 'store' ? [turn] : []);
    await store.close?.();
  });
});
