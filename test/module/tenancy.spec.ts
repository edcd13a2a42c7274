import { type ExecutionContext } from '@nestjs/common';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import {
  AffinityResolver,
  type Principal,
  type PrincipalResolver,
  resolveSession,
  type Session,
  SessionsConfigurationError,
  signedInUser,
} from 'nestjs-agent-sessions';
import { PRINCIPAL_RESOLVER } from '../../lib/common/sessions.tokens.js';
import { type AskOptions, type ClientApp, clientApp } from '../http/client-app.js';

const WORKSPACES = ['acme', 'other', undefined] as const;
type Workspace = (typeof WORKSPACES)[number];

const inWorkspace = (workspaceId: Workspace) => (workspaceId === undefined ? {} : { workspaceId });
const annOf = (workspaceId: Workspace): AskOptions['as'] => ({ userId: 'ann', ...inWorkspace(workspaceId) });

describe.each(WORKSPACES)('ann of workspace %s, with an ann in other workspaces on the same surface', (mine) => {
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

  it('NST-24 keeps her surface when users of other workspaces attach it', async () => {
    for (const session of [own, ...foreign]) {
      expect((await app.sessions.get(session.id))?.attachedSurfaces).toEqual(['web']);
    }
  });

  it('NST-24 reaches her own session, even if a message names a foreign one', async () => {
    const message = { userId: 'ann', ...inWorkspace(mine), surfaceId: 'web' };
    const resolver = app.app.get(AffinityResolver);

    expect(await resolveSession(message, app.sessions, resolver)).toMatchObject({ id: own.id });
    for (const { id } of foreign) {
      expect(await resolveSession({ ...message, sessionId: id }, app.sessions, resolver)).toMatchObject({ id: own.id });
    }
  });

  it('NST-24 finds, counts and creates sessions in her own workspace', async () => {
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

  it('NST-24 ends only her own sessions, unless all workspaces are requested', async () => {
    await app.ask('post', '/sessions/revoke', { as: annOf(mine), body: {} }).expect(200);
    expect(await everybody()).toEqual(['expired', 'created', 'created']);

    await app.sessions.revokeAll('ann');
    expect(await everybody()).toEqual(['expired', 'expired', 'expired']);
  });
});

describe('the principal', () => {
  /** Returns the logged error; the response is a generic 500. */
  const refusal = async (principal: unknown): Promise<unknown> => {
    const { app, ask } = await clientApp({ principal: () => principal as Principal });
    try {
      const { body } = (await ask('get', '/sessions').expect(500)) as { readonly body: unknown };
      expect(body).toMatchObject({ code: 'CONFIGURATION' });
      const resolve = app.get<PrincipalResolver>(PRINCIPAL_RESOLVER);
      return await Promise.resolve(resolve({} as ExecutionContext)).catch((error: unknown) => error);
    } finally {
      await app.close();
    }
  };

  it.each([
    ['userId', { userId: undefined }],
    ['userId', { userId: 4711 }],
    ['userId', 'ann'],
    ['workspaceId', { userId: 'ann', workspaceId: null }],
    ['workspaceId', { userId: 'ann', workspaceId: 4711 }],
  ])('NST-24 is rejected with an invalid %s: %j', async (field, principal) => {
    const error = await refusal(principal);

    expect(error).toBeInstanceOf(SessionsConfigurationError);
    expect((error as Error).message).toContain(`The ${field} that the option principal returns must be`);
    expect((error as Error).message).not.toContain('4711');
  });

  it.each([
    ['id', { id: 4711 }],
    ['workspaceId', { id: 'ann', workspaceId: 4711 }],
    ['workspaceId', { id: 'ann', workspaceId: ['acme'] }],
  ])('NST-24 by default requires strings, so that workspaces stay separate: %s of %j', (field, user) => {
    const context = new ExecutionContextHost([{ user }]);
    context.setType('http');

    const read = () => signedInUser(context);
    expect(read).toThrow(SessionsConfigurationError);
    expect(read).toThrow(`The signed-in user's ${field} must be a string.`);
    expect(read).not.toThrow('4711');
  });

  it.each([undefined, null])('NST-24 by default has no workspace if it is %s', (workspaceId) => {
    const context = new ExecutionContextHost([{ user: { id: 'ann', workspaceId } }]);
    context.setType('http');

    expect(signedInUser(context)).toEqual({ userId: 'ann' });
  });

  it.each([undefined, null, ''])('NST-11 by default nobody is signed in if the id is %j', (id) => {
    const context = new ExecutionContextHost([{ user: { id } }]);
    context.setType('http');

    expect(signedInUser(context)).toBeNull();
  });
});
