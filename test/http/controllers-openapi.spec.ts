import 'reflect-metadata';
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { getMetadataStorage } from 'class-validator';
import {
  type ChatList,
  type ChatMessages,
  type ConversationPage,
  type SessionView,
  type TurnView,
} from 'nestjs-agent-sessions/http';
import {
  CreateSessionBody,
  ListSessionsQuery,
  RevokeSessionsBody,
  UpdateSessionBody,
} from '../../lib/http/sessions/sessions.inputs.js';
import { ConversationQuery, ListTurnsQuery, SubmitTurnBody } from '../../lib/http/turns/turns.inputs.js';
import {
  ChatMessagesQuery,
  ChatRequest,
  ChatStreamQuery,
  ListChatsQuery,
  StopChatRequest,
} from '../../lib/http/chat/chat.inputs.js';
import { chunksOf, said, startChatApp } from './chat-app.js';
import { clientApp, desk } from './client-app.js';

interface Schema {
  readonly properties: Record<string, Schema>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: boolean;
}

interface Operation {
  readonly operationId: string;
  readonly requestBody?: {
    readonly content: Record<string, { readonly schema: Schema }>;
    readonly required?: boolean;
  };
  readonly responses: Record<string, { readonly content?: Record<string, { readonly schema: Schema }> }>;
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly required?: boolean }[];
}

type Paths = Record<string, Record<string, Operation>>;

describe('the session and turn controllers in an OpenAPI document', () => {
  let paths: Paths;

  beforeAll(() => {
    const program = fileURLToPath(new URL('./fixtures/openapi.mjs', import.meta.url));
    const text = execFileSync(process.execPath, [program], { encoding: 'utf8', timeout: 60_000 });
    ({ paths } = JSON.parse(text) as { paths: Paths });
  }, 70_000);

  it('NST-16 has every route, each with a unique name', () => {
    const routes = Object.entries(paths)
      .filter(([path]) => !/^\/(state|chat)/.test(path))
      .flatMap(([path, methods]) =>
        Object.entries(methods).map(([method, { operationId }]) => [method, path, operationId]),
      );

    expect(routes).toEqual([
      ['post', '/sessions', 'createSession'],
      ['get', '/sessions', 'listSessions'],
      ['get', '/sessions/current', 'getSession'],
      ['patch', '/sessions/current', 'updateSession'],
      ['delete', '/sessions/current', 'endSession'],
      ['post', '/sessions/revoke', 'revokeSessions'],
      ['post', '/turns', 'submitTurn'],
      ['get', '/turns', 'listTurns'],
      ['get', '/turns/messages', 'listTurnMessages'],
      ['get', '/turns/{turnId}', 'getTurn'],
      ['post', '/turns/{turnId}/cancel', 'cancelTurn'],
      ['get', '/turns/{turnId}/events', 'turnEvents'],
    ]);
  });

  it.each([
    ['/sessions', 'post', CreateSessionBody, ['id']],
    ['/sessions/current', 'patch', UpdateSessionBody, []],
    ['/sessions/revoke', 'post', RevokeSessionsBody, []],
    ['/turns', 'post', SubmitTurnBody, []],
  ] as const)('NST-16 %s, %s: has exactly the body properties of its class', (path, method, type, hidden) => {
    const schema = paths[path][method].requestBody?.content['application/json'].schema;

    expect(Object.keys(schema?.properties ?? {}).sort()).toEqual(
      keysOf(type).filter((key) => !(hidden as readonly string[]).includes(key)),
    );
    expect(schema?.additionalProperties).toBe(false);
  });

  it.each([
    ['/sessions', ListSessionsQuery],
    ['/turns', ListTurnsQuery],
    ['/turns/messages', ConversationQuery],
  ] as const)('NST-16 %s: has exactly the query parameters of its class', (path, type) => {
    const query = paths[path].get.parameters.filter((parameter) => parameter.in === 'query');

    expect(query.map(({ name }) => name).sort()).toEqual(keysOf(type));
  });

  it('NST-16 describes the session parameter and the rejections', () => {
    for (const [path, methods] of Object.entries(paths).filter(([path]) => /^\/turns|current$/.test(path))) {
      for (const { parameters, responses } of Object.values(methods)) {
        expect([path, parameters]).toEqual([
          path,
          expect.arrayContaining([expect.objectContaining({ name: 'x-session-id', in: 'header', required: true })]),
        ]);
        expect(Object.keys(responses)).toEqual(expect.arrayContaining(['400', '401', '403', '404', '503']));
      }
    }
    expect(Object.keys(paths['/turns/{turnId}/events'].get.responses['200'].content ?? {})).toEqual([
      'text/event-stream',
    ]);
  });

  it('AIS-10 has every route of the chat controller, each with a unique name', () => {
    const chats = Object.entries(paths).filter(([path]) => path.startsWith('/chat'));
    const routes = chats.flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { operationId, responses }]) => {
        expect(Object.keys(responses)).toEqual(expect.arrayContaining(['400', '401', '403', '410', '503']));
        return [method, path, operationId];
      }),
    );
    expect(routes).toEqual([
      ['post', '/chat', 'sendChatMessage'],
      ['get', '/chat', 'listChats'],
      ['post', '/chat/{id}', 'sendMessageToChat'],
      ['delete', '/chat/{id}', 'deleteChat'],
      ['get', '/chat/{id}/stream', 'resumeChat'],
      ['get', '/chat/{id}/{run}/stream', 'resumeChatResponse'],
      ['post', '/chat/{id}/stop', 'stopChat'],
      ['get', '/chat/{id}/messages', 'listChatMessages'],
    ]);
    for (const [path, method] of [
      ['/chat', 'post'],
      ['/chat/{id}', 'post'],
      ['/chat/{id}/stream', 'get'],
      ['/chat/{id}/{run}/stream', 'get'],
    ]) {
      expect(Object.keys(paths[path][method].responses['200'].content ?? {})).toEqual(['text/event-stream']);
    }
  });

  it('AIS-10 describes the requests of the chat controller', () => {
    const { properties } = paths['/chat'].post.requestBody!.content['application/json'].schema;
    expect(Object.keys(properties).sort()).toEqual([...keysOf(ChatRequest), 'messages'].sort());
    for (const [path, type] of [
      ['/chat', ListChatsQuery],
      ['/chat/{id}/messages', ChatMessagesQuery],
      ['/chat/{id}/stream', ChatStreamQuery],
      ['/chat/{id}/{run}/stream', ChatStreamQuery],
    ] as const) {
      const query = paths[path].get.parameters.filter((parameter) => parameter.in === 'query');
      expect([path, query.map(({ name }) => name).sort()]).toEqual([path, keysOf(type)]);
    }
    const { content, required } = paths['/chat/{id}/stop'].post.requestBody!;
    expect(Object.keys(content['application/json'].schema.properties)).toEqual(keysOf(StopChatRequest));
    expect(required).toBe(false);
  });

  it('AIS-10 describes chats and messages as the API returns them', async () => {
    const app = await startChatApp({ orchestrators: [desk] });
    await chunksOf(await app.ask('POST', '/one', { body: { messages: [said('hi')] } }));
    const { chats } = await app.json<ChatList>('GET', '');
    const { messages } = await app.json<ChatMessages>('GET', '/one/messages');
    expect([chats.length, messages.length]).toEqual([1, 2]);
    for (const chat of chats) expect(unlike(chat, schemaOf('/chat', 'get', '200').properties.chats.items!)).toEqual([]);
    const schema = schemaOf('/chat/{id}/messages', 'get', '200').properties.messages.items!;
    for (const message of messages) expect(unlike(message, schema)).toEqual([]);
  });

  it('NST-16 describes sessions and turns as the API returns them', async () => {
    const client = await clientApp();
    const body = { surfaceId: 'web' };
    const session = (await client.ask('post', '/sessions', { body }).expect(201)).body as SessionView;
    const sessionId = session.id;
    const turn = (await client.ask('post', '/turns', { sessionId, body: { text: 'hi' } }).expect(202)).body as TurnView;
    await client.turns.result(turn.id);
    const done = (await client.ask('get', `/turns/${turn.id}`, { sessionId }).expect(200)).body as TurnView;
    const failed = (await client.ask('post', '/turns', { sessionId, body: { text: 'fail' } }).expect(202))
      .body as TurnView;
    await client.turns.result(failed.id).catch(() => undefined);
    const over = (await client.ask('get', `/turns/${failed.id}`, { sessionId }).expect(200)).body as TurnView;
    const page = (await client.ask('get', '/turns/messages', { sessionId }).expect(200)).body as ConversationPage;
    await client.app.close();

    expect(unlike(session, schemaOf('/sessions', 'post', '201'))).toEqual([]);
    for (const view of [turn, done, over]) expect(unlike(view, schemaOf('/turns', 'post', '202'))).toEqual([]);
    const schema = schemaOf('/turns/messages', 'get', '200').properties.turns.items!;
    expect(page.turns).toHaveLength(2);
    for (const one of page.turns) {
      expect(unlike(one, schema)).toEqual([]);
      for (const message of one.messages) expect(unlike(message, schema.properties.messages.items!)).toEqual([]);
    }
    expect(schemaOf('/turns', 'get', '200').properties.turns.items).toEqual(schemaOf('/turns', 'post', '202'));
    expect(schemaOf('/sessions', 'get', '200').properties.sessions.items).toEqual(schemaOf('/sessions', 'post', '201'));
  });

  function schemaOf(path: string, method: string, status: string): Schema {
    const schema = paths[path][method].responses[status].content?.['application/json'].schema;
    if (!schema) throw new Error(`${method} ${path} has no schema for ${status}.`);
    return schema;
  }
});

/** Returns the keys that are missing in the schema, and required keys that are missing in the value. */
function unlike(value: object, { properties, required = [] }: Schema): string[] {
  return [...Object.keys(value).filter((key) => !(key in properties)), ...required.filter((key) => !(key in value))];
}

function keysOf(type: new () => object): string[] {
  const rules = getMetadataStorage().getTargetValidationMetadatas(type, '', false, false);
  return [...new Set(rules.map(({ propertyName }) => propertyName))].sort();
}
