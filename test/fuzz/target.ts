import { request as send, Agent } from 'node:http';
import { type CanActivate, type ExecutionContext, type INestApplication, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import {
  memoryAdapter,
  type Principal,
  SESSIONS_ADAPTER,
  type SessionsAdapter,
  SessionsModule,
  SessionStateService,
  SessionStore,
  StateEvents,
} from 'nestjs-agent-sessions';
import { type FuzzRequest } from './requests.js';

export const PLATFORMS = ['express', 'fastify'] as const;
export type Platform = (typeof PLATFORMS)[number];

const NAMESPACES = ['conversation', 'tools', 'task', 'flow'].map((name) => `agent-sessions:${name}`);

/** Whose the sessions are, in the order of their numbers. */
const OWNERS: readonly Principal[] = [
  { userId: 'ann' },
  { userId: 'bob' },
  { userId: 'ann', workspaceId: 'acme' },
  { userId: 'bob', workspaceId: 'acme' },
];

export interface FuzzAnswer {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

class OpenGuard implements CanActivate {
  canActivate(): boolean {
    return true;
  }
}

function principalOf(context: ExecutionContext): Principal | null {
  const { headers } = context.switchToHttp().getRequest<{ headers: Record<string, string | undefined> }>();
  return principalIn(headers);
}

export function principalIn(headers: Readonly<Record<string, string | undefined>>): Principal | null {
  const { 'x-user-id': userId, 'x-workspace-id': workspaceId, 'x-capabilities': capabilities = '' } = headers;
  if (userId === undefined) return null;
  return { userId, ...(workspaceId === undefined ? {} : { workspaceId }), capabilities: capabilities.split(' ') };
}

/** An application that serves the control plane, with sessions of several owners that have something in every module. */
export class FuzzTarget {
  readonly sessions: { readonly id: string; readonly owner: Principal }[] = [];
  /** Told by the audit since it was last looked at. */
  private told = 0;
  private readonly agent = new Agent({ keepAlive: true });

  private constructor(
    private readonly app: INestApplication,
    private readonly url: URL,
  ) {
    app.get(StateEvents).stream.subscribe(() => (this.told += 1));
  }

  static async start(platform: Platform): Promise<FuzzTarget> {
    @Module({
      imports: [
        SessionsModule.forRoot({
          adapter: memoryAdapter(),
          sweep: false,
          principal: principalOf,
          tokenCounter: (text) => Math.ceil(text.length / 4),
          controllers: { state: { guards: [OpenGuard] } },
        }),
      ],
    })
    class FuzzModule {}

    const options = { logger: false } as const;
    const app =
      platform === 'fastify'
        ? await NestFactory.create(FuzzModule, new FastifyAdapter(), options)
        : await NestFactory.create(FuzzModule, options);
    await app.listen(0, '127.0.0.1');
    const target = new FuzzTarget(app, new URL(await app.getUrl()));
    for (const owner of OWNERS) {
      const { id } = await app.get(SessionStore).create({ userId: owner.userId, workspaceId: owner.workspaceId });
      target.sessions.push({ id, owner });
      await target.fill(id);
    }
    return target;
  }

  async close(): Promise<void> {
    this.agent.destroy();
    await this.app.close();
  }

  /** Nothing but the same in every module. */
  async fill(sessionId: string): Promise<void> {
    await this.app.get(SessionStateService).reset({ sessionId });
    const { conversation, tools, task, flow } = this.app.get(SessionStateService);
    await conversation.append(
      sessionId,
      Array.from({ length: 30 }, (_, index) => ({
        role: index % 2 ? 'assistant' : 'user',
        content: `Message ${index}.`,
      })),
    );
    await tools.set(sessionId, 'search', 'cursor', { page: 7 });
    await tools.set(sessionId, 'search', 'key', 'hunter2', { secret: true });
    await task.create(sessionId);
    await flow.save(sessionId, 'refund', { step: 'ask' });
  }

  /** What each session has, as a text. */
  async contents(): Promise<string[]> {
    const adapter = this.app.get<SessionsAdapter>(SESSIONS_ADAPTER);
    return Promise.all(
      this.sessions.map(async ({ id: sessionId }) => {
        const documents = await Promise.all(
          NAMESPACES.map((namespace) => adapter.state.list({ namespace, sessionId, limit: 1000 })),
        );
        const messages = await adapter.conversations.page(sessionId, { limit: 1000 });
        return JSON.stringify([documents, messages]);
      }),
    );
  }

  /** How many events the audit has told since it was asked before. */
  takeTold(): number {
    const { told } = this;
    this.told = 0;
    return told;
  }

  send({ method, path, headers, body }: FuzzRequest): Promise<FuzzAnswer> {
    const content = typeof body === 'string' ? Buffer.from(this.withIds(body)) : body;
    const length = content && headers['transfer-encoding'] === undefined ? { 'content-length': content.length } : {};
    return new Promise((resolve, reject) => {
      const { hostname, port } = this.url;
      const options = { agent: this.agent, hostname, port, method, path, headers: { ...headers, ...length } };
      const sent = send(options, (answer) => {
        const parts: Buffer[] = [];
        answer.on('data', (part: Buffer) => parts.push(part));
        answer.on('end', () => {
          const { statusCode: status = 0, headers: answered } = answer;
          resolve({ status, type: answered['content-type'] ?? '', text: Buffer.concat(parts).toString() });
        });
      });
      sent.setTimeout(10_000, () => sent.destroy(new Error('No answer within 10 seconds.')));
      sent.on('error', reject);
      sent.end(content ?? undefined);
    });
  }

  withIds(text: string): string {
    return text.replaceAll(/ID([0-3])/g, (_, index: string) => this.sessions[Number(index)].id);
  }
}
