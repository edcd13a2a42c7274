import { randomBytes } from 'node:crypto';
import { request as send, Agent } from 'node:http';
import { type CanActivate, type ExecutionContext, type INestApplication, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import {
  defineOrchestrator,
  memoryAdapter,
  type Principal,
  reply,
  SESSIONS_ADAPTER,
  type SessionsAdapter,
  SessionsModule,
  SessionStateService,
  SessionStore,
  TurnService,
} from 'nestjs-agent-sessions';
import { StateEvents } from 'nestjs-agent-sessions/http';
import { type FuzzRequest } from './fuzz-request.js';

export const PLATFORMS = ['express', 'fastify'] as const;
export type Platform = (typeof PLATFORMS)[number];

class OpenGuard implements CanActivate {
  canActivate(): boolean {
    return true;
  }
}

const ID = /ID([0-3])/g;
const TURN = /TURN([0-4])/g;
/** An id of the usual length that does not exist. */
const STRANGER = '0'.repeat(32);
const guards = [new OpenGuard()];

const NAMESPACES = ['conversation', 'tools', 'task', 'flow'].map((name) => `agent-sessions:${name}`);

/** The owners of the sessions, in the order of their numbers. */
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

function principalOf(context: ExecutionContext): Principal | null {
  const { headers } = context.switchToHttp().getRequest<{ headers: Record<string, string | undefined> }>();
  return principalIn(headers);
}

export function principalIn(headers: Readonly<Record<string, string | undefined>>): Principal | null {
  const { 'x-user-id': userId, 'x-workspace-id': workspaceId, 'x-capabilities': capabilities = '' } = headers;
  if (userId === undefined) return null;
  return { userId, ...(workspaceId === undefined ? {} : { workspaceId }), capabilities: capabilities.split(' ') };
}

const desk = defineOrchestrator({ name: 'desk', intents: { answer: () => Promise.resolve(reply('done')) } });
const backOffice = defineOrchestrator({
  name: 'back-office',
  intents: { answer: () => Promise.resolve(reply('done')) },
});

export interface FuzzSession {
  readonly id: string;
  readonly owner: Principal;
}

/** All sessions, each with its data as a string. */
export type Contents = ReadonlyMap<string, string>;

/** An application with all controllers, and sessions of several owners with a turn and data in every module. */
export class FuzzTarget {
  readonly sessions: FuzzSession[] = [];
  /** Turns in the order of the sessions. The last one belongs to the first session and is not visible to clients. */
  private turns: string[] = [];
  /** Audit events since the last check. */
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
          // Turns remain queued.
          role: 'submit',
          controllers: {
            state: { guards },
            sessions: { guards },
            turns: { guards, orchestrators: [desk], whenBusy: ['enqueue', 'reject', 'interrupt', 'latest'] },
          },
        }),
        SessionsModule.forFeature([desk, backOffice]),
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
      const session = { id: randomBytes(16).toString('hex'), owner };
      target.sessions.push(session);
      await target.put(session);
    }
    return target;
  }

  async close(): Promise<void> {
    this.agent.destroy();
    await this.app.close();
  }

  /** Restores the initial session, with the same data in every module. */
  async put(session: FuzzSession): Promise<void> {
    const { id: sessionId, owner } = session;
    const { userId, workspaceId } = owner;
    const sessions = this.app.get(SessionStore);
    await sessions.delete(sessionId);
    await sessions.create({
      id: sessionId,
      userId,
      initialSurfaceId: `of-${sessionId}`,
      ...(workspaceId ? { workspaceId } : {}),
    });
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
    const number = this.sessions.indexOf(session);
    this.turns[number] = await this.submit('desk', sessionId);
    if (number === 0) this.turns[OWNERS.length] = await this.submit('back-office', sessionId);
  }

  async drop(sessionId: string): Promise<void> {
    await this.app.get(SessionStore).delete(sessionId);
  }

  /** Reads all stored data. */
  async contents(): Promise<Contents> {
    const adapter = this.app.get<SessionsAdapter>(SESSIONS_ADAPTER);
    const sessions = await adapter.sessions.fetchMany({ limit: 1000 });
    const contents = sessions.map(async (session): Promise<[string, string]> => {
      const sessionId = session.id;
      const documents = await Promise.all(
        NAMESPACES.map((namespace) => adapter.state.list({ namespace, sessionId, limit: 1000 })),
      );
      const messages = await adapter.conversations.page(sessionId, { limit: 1000 });
      const turns = await adapter.turns.list({ sessionId, limit: 1000 });
      return [sessionId, JSON.stringify([session, documents, messages, turns])];
    });
    return new Map(await Promise.all(contents));
  }

  /** Returns the number of audit events since the last call. */
  takeTold(): number {
    const { told } = this;
    this.told = 0;
    return told;
  }

  /** Returns the request with foreign ids replaced by missing ones. */
  withStrangers(request: FuzzRequest, isOwn: (session: FuzzSession) => boolean): FuzzRequest {
    const strange = (text: string): string =>
      text
        .replaceAll(ID, (token, index: string) => (isOwn(this.sessions[Number(index)]) ? token : STRANGER))
        .replaceAll(TURN, (token, index: string) => {
          const session = this.sessions[Number(index)] as FuzzSession | undefined;
          return session && isOwn(session) ? token : STRANGER;
        });
    return mapped(request, strange);
  }

  send(request: FuzzRequest): Promise<FuzzAnswer> {
    const { method, path, headers, body } = mapped(request, (text) => this.withIds(text));
    const content = typeof body === 'string' ? Buffer.from(body) : body;
    const length = content && headers['transfer-encoding'] === undefined ? { 'content-length': content.length } : {};
    return new Promise((resolve, reject) => {
      const { hostname, port } = this.url;
      const options = { agent: this.agent, hostname, port, method, path, headers: { ...headers, ...length } };
      const sent = send(options, (answer) => {
        if (answer.headers['content-type']?.startsWith('text/event-stream')) {
          // The stream ends with the turn.
          resolve({ status: answer.statusCode ?? 0, type: 'text/event-stream', text: '' });
          sent.destroy();
          return;
        }
        const parts: Buffer[] = [];
        answer.on('data', (part: Buffer) => parts.push(part));
        answer.on('end', () => {
          const { statusCode: status = 0, headers: answered } = answer;
          resolve({ status, type: answered['content-type'] ?? '', text: Buffer.concat(parts).toString() });
        });
      });
      sent.setTimeout(10_000, () => sent.destroy(new Error('No response within 10 seconds.')));
      sent.on('error', reject);
      sent.end(content ?? undefined);
    });
  }

  withIds(text: string): string {
    return text
      .replaceAll(ID, (_, index: string) => this.sessions[Number(index)].id)
      .replaceAll(TURN, (_, index: string) => this.turns[Number(index)]);
  }

  private async submit(orchestrator: string, sessionId: string): Promise<string> {
    const options = { sessionId, attributes: { key: 'hunter2' }, state: { key: 'hunter2' } };
    return (await this.app.get(TurnService).submit(orchestrator, 'hi', options)).id;
  }
}

function mapped({ method, path, headers, body }: FuzzRequest, map: (text: string) => string): FuzzRequest {
  return {
    method,
    path: map(path),
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, map(value)])),
    body: typeof body === 'string' ? map(body) : body,
  };
}
