import { join } from 'node:path';
import { SessionStore, type SessionsAdapter } from 'nestjs-agent-sessions';
import { TurnContexts } from '../../lib/turn/turn-contexts.js';
import { eventually } from '../support/eventually.js';
import { turnRequest } from '../support/ledger-requests.js';
import { sqliteAdapter, temporaryFolder } from '../support/stores.js';

const LOOK_MS = 20;

describe('contexts of turns', () => {
  let ours: SessionsAdapter;
  /** Another process: this store has no notifications that would reach from there. */
  let theirs: SessionsAdapter;

  beforeEach(async () => {
    const file = join(temporaryFolder(), 'sessions.db');
    [ours, theirs] = [sqliteAdapter(file), sqliteAdapter(file)];
    await ours.init?.();
    await theirs.init?.();
    await new SessionStore(ours.sessions).create({ id: 's', userId: 'ann' });
  });

  afterEach(async () => {
    await ours.close?.();
    await theirs.close?.();
  });

  it('PRF-12 BOT-02 go when the turn has ended or is gone, though no notification told of it; that of an open one stays', async () => {
    const contexts = new TurnContexts(true, ours.turns, ours.changes, LOOK_MS);
    await new SessionStore(ours.sessions).create({ id: 'deleted', userId: 'ann' });
    for (const [id, sessionId] of [
      ['open', 's'],
      ['ended', 's'],
      ['gone', 'deleted'],
    ]) {
      await ours.turns.accept(turnRequest(id, { sessionId }));
      contexts.keep(id, { context: { of: id } });
    }
    await theirs.turns.cancel('ended', 'cancel');
    await new SessionStore(theirs.sessions).delete('deleted');

    await eventually(() => !contexts.get('ended') && !contexts.get('gone'));
    expect(contexts.get('open')).toEqual({ of: 'open' });
    await theirs.turns.cancel('open', 'cancel');
    await eventually(() => !contexts.get('open'));
  });

  it('PRF-12 BOT-02 are no more than 10,000; the oldest make room', () => {
    const contexts = new TurnContexts(true, ours.turns, ours.changes);
    for (let n = 0; n <= 10_000; n += 1) contexts.keep(`t${n}`, { context: { n } });
    expect([contexts.get('t0'), contexts.get('t1'), contexts.get('t10000')]).toEqual([
      undefined,
      { n: 1 },
      { n: 10_000 },
    ]);
    contexts.close();
    expect(contexts.get('t1')).toBeUndefined();
  });
});
