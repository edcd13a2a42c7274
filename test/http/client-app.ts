import { type CanActivate, type ModuleMetadata, type Type } from '@nestjs/common';
import {
  type CreateSessionInput,
  defineOrchestrator,
  memoryAdapter,
  PermanentTurnError,
  reply,
  type Session,
  type SessionsAdapter,
  SessionsModule,
  type SessionsModuleOptions,
  type SessionsModuleStatics,
  SessionStore,
  type TurnContext,
  TurnService,
  type WhenBusy,
} from 'nestjs-agent-sessions';
import request from 'supertest';
import { type Gate } from '../support/running-application.js';
import { type HttpApp, PLATFORMS } from './http-app.js';
import { headerPrincipal, headersOf, OpenGuard, type Who } from './state-app.js';

/** The gates that counting turns wait for, by their text. */
export const doors = new Map<string, Gate>();

/** A scripted agent for tests. */
export const desk = defineOrchestrator({
  name: 'desk',
  intents: {
    answer: async (turn: TurnContext) => {
      const { text } = turn.input;
      if (text === 'fail') throw new PermanentTurnError('hunter2');
      if (text === 'wait') await turn.waitFor('approval');
      if (text.startsWith('count')) {
        for (const data of [1, 2]) await turn.emit({ type: 'delta', data });
        await doors.get(text)?.pass(turn.signal);
        await turn.emit({ type: 'delta', data: 3 });
      }
      return reply(`You said ${text}.`, { data: { words: text.split(' ').length } });
    },
  },
});

/** An orchestrator that is not enabled for clients. */
export const backOffice = defineOrchestrator({
  name: 'back-office',
  intents: { answer: () => Promise.resolve(reply('hunter2')) },
});

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete' | 'head' | 'options';

export interface ClientApp {
  readonly app: HttpApp;
  readonly adapter: SessionsAdapter;
  readonly sessions: SessionStore;
  readonly turns: TurnService;
  readonly session: (input?: Partial<CreateSessionInput>) => Promise<Session>;
  /** Sends a request as a user, by default ann; `sessionId` goes into the header. */
  readonly ask: (method: Method, path: string, options?: AskOptions) => request.Test;
}

export interface AskOptions {
  readonly as?: Who;
  readonly sessionId?: string;
  readonly body?: unknown;
}

export interface ClientAppOptions extends SessionsModuleOptions, Omit<SessionsModuleStatics, 'controllers'> {
  readonly platform?: (typeof PLATFORMS)[number];
  readonly guards?: readonly (Type<CanActivate> | CanActivate)[];
  readonly guardImports?: ModuleMetadata['imports'];
  readonly allowClientIds?: boolean;
  readonly whenBusy?: readonly WhenBusy[];
  readonly configure?: (app: HttpApp) => unknown;
  /** Controllers of the application. */
  readonly controllers?: Type[];
}

/** Starts an application with the session and turn controllers. The caller closes it. */
export async function clientApp(options: ClientAppOptions = {}): Promise<ClientApp> {
  const {
    platform = PLATFORMS[0],
    guards = [OpenGuard],
    guardImports = [],
    allowClientIds = false,
    whenBusy,
    configure,
    controllers = [],
    ...rest
  } = options;
  const { adapter = memoryAdapter() } = rest;
  const common = { guards, imports: guardImports };
  const app = await platform.start(
    {
      controllers,
      imports: [
        SessionsModule.forRoot({
          sweep: false,
          principal: headerPrincipal,
          ...rest,
          adapter,
          turns: { shutdownGraceMs: 50, ...rest.turns },
          controllers: {
            sessions: { ...common, allowClientIds },
            turns: { ...common, orchestrators: [desk], whenBusy },
          },
        }),
        SessionsModule.forFeature([desk, backOffice]),
      ],
    },
    configure,
  );
  const sessions = app.get(SessionStore);
  return {
    app,
    adapter,
    sessions,
    turns: app.get(TurnService),
    session: (input) => sessions.create({ userId: 'ann', ...input }),
    ask: (method, path, { as = { userId: 'ann' }, sessionId, body } = {}) => {
      const sent = request(app.getHttpServer())[method](path).set(headersOf(as));
      if (sessionId !== undefined) void sent.set('x-session-id', sessionId);
      if (typeof body === 'string') void sent.set('content-type', 'application/json');
      return body === undefined ? sent : sent.send(body as object);
    },
  };
}
