import { type CanActivate, type ExecutionContext, type ModuleMetadata } from '@nestjs/common';
import { type NestExpressApplication } from '@nestjs/platform-express';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { Test, type TestingModule } from '@nestjs/testing';
import { type Session } from 'nestjs-agent-sessions';

export type HttpApp = NestExpressApplication | NestFastifyApplication;

interface TestRequest {
  readonly headers: Record<string, string | undefined>;
  cookies?: Record<string, string>;
  user?: { id: string; workspaceId?: string };
}

/** Discards logs, because errors that tests provoke would fill the output. */
const QUIET = { logger: false } as const;

/** @param configure what an application does before it is initialized: pipes, prefixes, parsers */
type Start = (metadata: ModuleMetadata, configure?: (app: HttpApp) => unknown) => Promise<HttpApp>;

/** The two HTTP platforms of Nest, each with a cookie parser. */
export const PLATFORMS: readonly { readonly name: string; readonly start: Start }[] = [
  {
    name: 'Express',
    start: async (metadata, configure) => {
      const app = (await compile(metadata)).createNestApplication<NestExpressApplication>(QUIET);
      app.use((request: TestRequest, _response: unknown, next: () => void) => {
        request.cookies = parseCookies(request);
        next();
      });
      configure?.(app);
      return app.init();
    },
  },
  {
    name: 'Fastify',
    start: async (metadata, configure) => {
      const app = (await compile(metadata)).createNestApplication<NestFastifyApplication>(
        new FastifyAdapter({ onConstructorPoisoning: 'ignore' }),
        QUIET,
      );
      const server = app.getHttpAdapter().getInstance();
      server.addHook('onRequest', (request, _reply, done) => {
        const parsed = request as unknown as TestRequest;
        parsed.cookies = parseCookies(parsed);
        done();
      });
      configure?.(app);
      await app.init();
      await server.ready();
      return app;
    },
  },
];

/** Sets `request.user` from the headers, as passport or another guard would. */
export class HeaderAuthGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<TestRequest>();
    const { 'x-user-id': id, 'x-workspace-id': workspaceId } = request.headers;
    if (id !== undefined) request.user = { id, ...(workspaceId === undefined ? {} : { workspaceId }) };
    return true;
  }
}

function compile(metadata: ModuleMetadata): Promise<TestingModule> {
  return Test.createTestingModule(metadata).compile();
}

function parseCookies({ headers }: TestRequest): Record<string, string> {
  const pairs = (headers.cookie ?? '').split(';').filter((pair) => pair.includes('='));
  return Object.fromEntries(
    pairs.map((pair) => {
      const [name = '', value = ''] = pair.split('=', 2);
      return [name.trim(), decodeURIComponent(value.trim())];
    }),
  );
}

/** The values that the decorators passed to a handler, as its response. */
export interface Seen {
  readonly id: string | null;
  readonly session: Session | null;
}

export function seen(session: Session | undefined, id?: string): Seen {
  return { session: session ?? null, id: id ?? null };
}
