import { type CanActivate, type ExecutionContext, type ModuleMetadata, type Type } from '@nestjs/common';
import {
  type CreateSessionInput,
  memoryAdapter,
  type Principal,
  type PrincipalResolver,
  type Session,
  type SessionsAdapter,
  SessionsModule,
  type SessionsModuleOptions,
  SessionStore,
} from 'nestjs-agent-sessions';
import { STATE_CAPABILITIES, type StateEvent, StateEvents } from 'nestjs-agent-sessions/http';
import request from 'supertest';
import { type HttpApp, PLATFORMS } from './http-app.js';

/** Accepts every request, so that only the principal's capabilities decide. */
export class OpenGuard implements CanActivate {
  canActivate(): boolean {
    return true;
  }
}

/** Reads the principal from the headers. */
export const headerPrincipal: PrincipalResolver = (context: ExecutionContext): Principal | null => {
  const { headers } = context.switchToHttp().getRequest<{ headers: Record<string, string | undefined> }>();
  const { 'x-user-id': userId, 'x-workspace-id': workspaceId, 'x-capabilities': capabilities } = headers;
  if (userId === undefined) return null;
  return {
    userId,
    ...(workspaceId === undefined ? {} : { workspaceId }),
    ...(capabilities === undefined ? {} : { capabilities: capabilities.split(' ') }),
  };
};

export interface StateApp {
  readonly app: HttpApp;
  readonly adapter: SessionsAdapter;
  /** All audit events. */
  readonly events: StateEvent[];
  readonly session: (input?: Partial<CreateSessionInput>) => Promise<Session>;
  /** Sends a request as a user, by default ann with every capability but the operator's. */
  readonly post: (path: string, body?: object, as?: Who) => request.Test;
}

export interface Who {
  readonly userId?: string;
  readonly workspaceId?: string;
  readonly capabilities?: readonly string[];
}

export const OWNER = STATE_CAPABILITIES.filter((capability) => capability !== 'state.operator');
export const ANN: Who = { userId: 'ann', capabilities: OWNER };
export const OPERATOR: Who = { userId: 'olga', capabilities: STATE_CAPABILITIES };

export interface StateAppOptions extends SessionsModuleOptions {
  readonly platform?: (typeof PLATFORMS)[number];
  readonly guards?: readonly (Type<CanActivate> | CanActivate)[];
  /** The application's own. */
  readonly controllers?: Type[];
  /** Modules in addition to SessionsModule. */
  readonly imports?: NonNullable<ModuleMetadata['imports']>;
  readonly guardImports?: ModuleMetadata['imports'];
  readonly path?: string;
  readonly configure?: (app: HttpApp) => unknown;
}

/** Starts an application with the control plane over HTTP. The caller closes it. */
export async function stateApp(options: StateAppOptions = {}): Promise<StateApp> {
  const {
    platform = PLATFORMS[0],
    guards = [OpenGuard],
    guardImports = [],
    controllers = [],
    imports = [],
    path,
    configure,
    ...rest
  } = options;
  const { adapter = memoryAdapter() } = rest;
  const app = await platform.start(
    {
      controllers,
      imports: [
        SessionsModule.forRoot({
          sweep: false,
          // Only requests call the store.
          role: 'submit',
          principal: headerPrincipal,
          ...rest,
          adapter,
          controllers: { state: { guards, imports: guardImports, ...(path === undefined ? {} : { path }) } },
        }),
        ...imports,
      ],
    },
    configure,
  );
  const events: StateEvent[] = [];
  app.get(StateEvents).stream.subscribe((event) => events.push(event));
  const sessions = app.get(SessionStore);
  return {
    app,
    adapter,
    events,
    session: (input) => sessions.create({ userId: 'ann', ...input }),
    post: (to, body, as = ANN) => {
      const sent = request(app.getHttpServer()).post(to).set(headersOf(as));
      return body === undefined ? sent : sent.send(body);
    },
  };
}

export function headersOf({ userId, workspaceId, capabilities = [] }: Who): Record<string, string> {
  return {
    ...(userId === undefined ? {} : { 'x-user-id': userId }),
    ...(workspaceId === undefined ? {} : { 'x-workspace-id': workspaceId }),
    ...(capabilities.length === 0 ? {} : { 'x-capabilities': capabilities.join(' ') }),
  };
}

/** Stores an entry in two modules of a session. */
export async function fill({ state }: SessionsAdapter, sessionId: string): Promise<void> {
  const tool = { namespace: 'agent-sessions:tools', scope: 'search', key: 'cursor' };
  const flow = { namespace: 'agent-sessions:flow', scope: '', key: 'refund' };
  await state.set({ ...tool, sessionId }, { value: 7, secret: false });
  await state.set({ ...flow, sessionId }, { checkpoint: { step: 'ask' }, savedAt: new Date().toISOString() });
}

/** Returns the number of entries in the two modules. */
export async function filled({ state }: SessionsAdapter, sessionId: string): Promise<number[]> {
  const namespaces = ['agent-sessions:tools', 'agent-sessions:flow'];
  return Promise.all(namespaces.map((namespace) => state.count({ namespace, sessionId })));
}
