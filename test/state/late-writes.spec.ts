import {
  defineOrchestrator,
  OrchestrationStateManager,
  reply,
  SessionNotFoundError,
  SessionStateService,
} from 'nestjs-agent-sessions';
import { LIVE_STORES, startApplication } from '../support/running-application.js';

describe.each(LIVE_STORES)('state that a handler writes after its session was deleted, over $name', ({ open }) => {
  it('FIX-90 is not written to another session that got the id', async () => {
    const [began, begin] = gate();
    const [replaced, replace] = gate();
    const [ended, end] = gate();
    const errors: unknown[] = [];
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        answer: async ({ input, sessionId }) => {
          if (input.text === 'own') {
            await state.tools.set(sessionId, 'search', 'k', 'of bob');
            return reply('done');
          }
          begin();
          await replaced;
          for (const write of writes) errors.push(await write(sessionId).catch((error: unknown) => error));
          end();
          return reply('late');
        },
      },
    });
    const app = await startApplication({ adapter: open(), orchestrators: [desk] });
    const state = app.app.get(SessionStateService, { strict: false });
    const manager = app.app.get(OrchestrationStateManager, { strict: false });
    const writes: ((id: string) => Promise<unknown>)[] = [
      (id) => state.tools.set(id, 'search', 'k', 'secret of ann'),
      (id) => state.tools.increment(id, 'search', 'n'),
      (id) => state.conversation.append(id, [{ role: 'user', content: 'secret of ann' }]),
      (id) => state.task.create(id),
      (id) => state.flow.save(id, 'onboarding', 'secret of ann'),
      (id) => manager.of('desk').getOrCreateState(id),
      (id) => app.sessions.updateMetadata(id, { secret: 'of ann' }),
      (id) => app.sessions.attachSurface(id, 'surface of ann'),
      (id) => app.sessions.touch(id),
      (id) => app.sessions.revoke(id),
      (id) => app.turns.submit('desk', 'secret of ann', { sessionId: id }),
    ];
    const { id } = await app.sessions.create({ userId: 'ann' });
    await app.turns.submit('desk', 'hello', { sessionId: id });
    await began;
    await app.sessions.delete(id);
    await app.sessions.create({ id, userId: 'bob' });
    replace();
    await ended;

    expect(errors).toHaveLength(writes.length);
    for (const error of errors) expect(error).toBeInstanceOf(SessionNotFoundError);
    expect(await state.tools.list(id)).toEqual({ items: [] });
    expect(await state.conversation.list(id)).toEqual([]);
    expect((await state.task.list(id)).items).toEqual([]);
    expect(await state.flow.load(id, 'onboarding')).toBeNull();
    expect(await manager.of('desk').getState(id)).toBeNull();
    expect(await app.turns.list({ sessionId: id })).toEqual([]);
    expect(await app.sessions.get(id)).toMatchObject({
      userId: 'bob',
      state: 'created',
      attachedSurfaces: [],
      metadata: {},
      version: 1,
    });

    await app.handle(desk).execute('own', { sessionId: id });
    expect(await state.tools.get(id, 'search', 'k')).toMatchObject({ value: 'of bob' });
  });
});

function gate(): [opened: Promise<void>, open: () => void] {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return [opened, open];
}
