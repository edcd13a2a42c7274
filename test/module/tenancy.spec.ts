import { AffinityResolver, resolveSession, type Session } from 'nestjs-agent-sessions';
import { type AskOptions, type ClientApp, clientApp } from '../http/client-app.js';

const WORKSPACES = ['acme', 'other', undefined] as const;
type Workspace = (typeof WORKSPACES)[number];

const inWorkspace = (workspaceId: Workspace) => (workspaceId === undefined ? {} : { workspaceId });
const annOf = (workspaceId: Workspace): AskOptions['as'] => ({ userId: 'ann', ...inWorkspace(workspaceId) });

describe.each(WORKSPACES)('ann of workspace %s, where others have an ann on the same surface', (mine) => {
  let app: ClientApp;
  let own: Session;
  let foreign: Session[];

  const everybody = () => Promise.all([own, ...foreign].map(async ({ id }) => (await app.sessions.get(id))?.state));

  beforeEach(async () => {
    app = await clientApp({ surfacePolicy: 'move' });
    const made: Session[] = [];
    for (const workspace of WORKSPACES) {
      made.push(await app.session({ ...inWorkspace(workspace), initialSurfaceId: 'web', metadata: { workspace } }));
    }
    own = made[WORKSPACES.indexOf(mine)];
    foreign = made.filter((session) => session !== own);
  });

  afterEach(() => app.app.close());

  it('NST-24 has the surface to herself: nobody of another workspace takes it from her', async () => {
    for (const session of [own, ...foreign]) {
      expect((await app.sessions.get(session.id))?.attachedSurfaces).toEqual(['web']);
    }
  });

  it('NST-24 a message goes to her own session, also when it names a foreign one', async () => {
    const message = { userId: 'ann', ...inWorkspace(mine), surfaceId: 'web' };
    const resolver = app.app.get(AffinityResolver);

    expect(await resolveSession(message, app.sessions, resolver)).toMatchObject({ id: own.id });
    for (const { id } of foreign) {
      expect(await resolveSession({ ...message, sessionId: id }, app.sessions, resolver)).toMatchObject({ id: own.id });
    }
  });

  it('NST-24 finds, counts and begins in her own workspace', async () => {
    const query = { userId: 'ann', workspaceId: mine ?? null };
    const draft = { userId: 'ann', ...inWorkspace(mine), initialSurfaceId: 'web' };

    expect(await app.sessions.find(query)).toEqual([own]);
    expect((await app.sessions.page(query)).sessions).toEqual([own]);
    expect(await app.sessions.count(query)).toBe(1);
    expect(await app.sessions.createOrAdopt(draft)).toEqual(own);
  });

  it('NST-24 sees no session and no turn of another workspace over HTTP', async () => {
    const turn = await app.turns.submit('desk', 'hello', { sessionId: foreign[0].id });
    const as = annOf(mine);

    const listed = await app.ask('get', '/sessions', { as }).expect(200);
    expect((listed.body as { sessions: Session[] }).sessions.map(({ id }) => id)).toEqual([own.id]);
    for (const { id } of foreign) {
      await app.ask('get', '/sessions/current', { as, sessionId: id }).expect(404);
      await app.ask('delete', '/sessions/current', { as, sessionId: id }).expect(404);
      await app.ask('post', '/turns', { as, sessionId: id, body: { text: 'hello' } }).expect(404);
    }
    await app.ask('get', `/turns/${turn.id}`, { as, sessionId: own.id }).expect(404);
  });

  it('NST-24 ends her own sessions only, unless all workspaces are meant', async () => {
    await app.ask('post', '/sessions/revoke', { as: annOf(mine), body: {} }).expect(200);
    expect(await everybody()).toEqual(['expired', 'created', 'created']);

    await app.sessions.revokeAll('ann');
    expect(await everybody()).toEqual(['expired', 'expired', 'expired']);
  });
});
