import { randomBytes } from 'node:crypto';
import { kill } from '../support/child-process.js';
import { eventually } from '../support/eventually.js';
import { type Application } from '../support/running-application.js';
import { POSTGRES, REDIS } from '../support/servers.js';
import { optionsOn, type StoreOptions } from '../support/stores.js';
import { LONG, type Said, startApi, startWorker, statusOf, STEPS } from './iterating-workers.js';

async function rollOut(store: StoreOptions): Promise<void> {
  const api = await startApi(store);
  const said: Said[] = [];
  const former = await startWorker(store, said);
  const sessionIds = await Promise.all(Array.from({ length: 8 }, () => api.session()));
  const say = (by: Application, text: string) => async (sessionId: string, index: number) =>
    by.turns.submit('desk', text, {
      sessionId,
      attributes: text === 'second' && index < 2 ? { dieAt: 'after 2' } : {},
    });
  const over = async (turns: readonly { id: string }[]): Promise<void> => {
    for (const { id } of turns) await eventually(async () => (await statusOf(api, id)) === 'awaiting-input', LONG);
  };
  await over(await Promise.all(sessionIds.map(say(api, 'first'))));
  // Two turns are in flight when the new version starts. The old worker is killed last, with them.
  const second = await Promise.all(sessionIds.map(say(api, 'second')));
  await eventually(() => said.filter(({ what }) => what === 'stopped').length === 2, LONG);
  await startWorker(store, said, { version: '2' });
  await over(second.slice(2));
  const third = await Promise.all(sessionIds.map(say(api, 'third')));
  const later = await startApi(store, '2');
  const fourth = await Promise.all(sessionIds.map(say(later, 'fourth')));
  await over(fourth.slice(2));
  await kill(former);
  await over([...second, ...third, ...fourth]);

  // Each of the four turns of a session does every step once.
  const done = (): Said[] => said.filter(({ what }) => what === 'did');
  await eventually(() => done().length >= sessionIds.length * 4 * STEPS.length, LONG);
  for (const [index, sessionId] of sessionIds.entries()) {
    const texts = ['first', 'second', 'third', 'fourth'];
    const turns = await api.turns.list({ sessionId });
    expect(turns.map(({ lost }) => lost)).toEqual([0, index < 2 ? 1 : 0, 0, 0]);
    const path = texts.flatMap((text) => STEPS.map((step) => `${text} ${step}`));
    expect(await api.checkpoints.load('desk', sessionId)).toMatchObject({ version: '2', state: { path } });
    for (const { id } of turns) {
      const ofTurn = done().filter(({ turnId }) => turnId === id);
      expect(ofTurn.map(({ iteration }) => iteration)).toEqual(STEPS);
      if (id === turns[3].id) expect(ofTurn.map(({ version }) => version)).toEqual(STEPS.map(() => '2'));
    }
  }
}

// Several worker processes need a server. On PostgreSQL it is a race of SQL transactions, on Redis one of scripts.
const SERVERS = [POSTGRES, REDIS].filter(({ url }) => url !== '');

it('BOT-24 BOT-35 migrates old sessions while two versions run, and neither blocks nor repeats a turn', async () => {
  await Promise.all(SERVERS.map((server) => rollOut(optionsOn(server, `t${randomBytes(6).toString('hex')}_`))));
}, 120_000);
