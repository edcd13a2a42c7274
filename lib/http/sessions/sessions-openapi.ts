import { SESSION_STATES } from '../../ledger/session.js';
import {
  anything,
  body,
  BODY_REFUSALS,
  count,
  documented,
  ERROR_SCHEMA,
  flag,
  listOf,
  NAME,
  object,
  oneOf,
  REFUSALS,
  type RouteDoc,
  type Schema,
  SESSION_HEADER,
  text,
  time,
} from '../controllers/openapi.js';

type Operation = 'create' | 'list' | 'get' | 'update' | 'end' | 'revoke';

const METADATA = anything('The application’s and the user’s.');
const MERGED = anything('Merged by top-level keys; null removes one. May be absent beside unset.');
const UNSET = { ...listOf(NAME, 'Keys to remove; metadata must not have them.'), maxItems: 1000 };
const STATE = oneOf(SESSION_STATES);
const SURFACE: Schema = { type: 'string', minLength: 1, maxLength: 256, description: 'Where the user speaks.' };

const SESSION = object(
  {
    id: text('For the header x-session-id.'),
    state: STATE,
    createdAt: time('When it was made.'),
    lastActivityAt: time('The last activity.'),
    stateChangedAt: time('When the state last changed; absent while it never has.'),
    attachedSurfaces: listOf(NAME, 'In the order in which they were attached.'),
    metadata: METADATA,
  },
  ['id', 'state', 'createdAt', 'lastActivityAt', 'attachedSurfaces', 'metadata'],
);

const REFUSALS_OF_BODIES: Readonly<Record<number, string>> = {
  ...BODY_REFUSALS,
  400: 'The request is wrong.',
  413: 'The body, or what it makes of the metadata, is too large.',
};

const REFUSALS_OF_ONE: Readonly<Record<number, string>> = {
  400: 'The request is wrong, or names no session.',
  404: 'There is no such session, or it is somebody else’s.',
};

const OVER: Readonly<Record<number, string>> = { 410: 'The session is expired.' };

type Doc = Omit<RouteDoc, 'tag' | 'id' | 'error'>;

const one = (status: number, description: string): Doc['answer'] => ({ status, description, schema: SESSION });

const DOCS: Readonly<Record<Operation, Doc>> = {
  create: {
    summary: 'Begins a session',
    body: body({ surfaceId: SURFACE, metadata: METADATA }),
    answer: one(201, 'The new session.'),
    refusals: { ...REFUSALS, ...REFUSALS_OF_BODIES, 409: 'The surface or the id belongs to another session.' },
  },
  list: {
    summary: 'The user’s sessions, the latest activity first',
    query: [
      { name: 'state', required: false, schema: listOf(STATE) },
      { name: 'surfaceId', required: false, schema: SURFACE },
      { name: 'limit', required: false, schema: { ...count(1, 'Default 50.'), maximum: 200 } },
    ],
    headers: [{ name: 'x-cursor', required: false, description: 'The nextCursor of the page before.' }],
    answer: {
      status: 200,
      description: 'A page.',
      schema: object({ sessions: listOf(SESSION), nextCursor: text('Absent on the last page.') }, ['sessions']),
    },
    refusals: { ...REFUSALS, 400: 'The query is wrong.' },
  },
  get: {
    summary: 'The session that the request names',
    headers: [SESSION_HEADER],
    answer: one(200, 'The session.'),
    refusals: { ...REFUSALS, ...REFUSALS_OF_ONE, ...OVER },
  },
  update: {
    summary: 'Changes the metadata of the session',
    headers: [SESSION_HEADER],
    body: { ...body({ metadata: MERGED, unset: UNSET }), minProperties: 1 },
    answer: one(200, 'The session as it is now.'),
    refusals: { ...REFUSALS, ...REFUSALS_OF_BODIES, ...REFUSALS_OF_ONE, ...OVER },
  },
  end: {
    summary: 'Ends the session for good, what runs in it and the streams of it',
    headers: [SESSION_HEADER],
    answer: { status: 204, description: 'It is over.' },
    refusals: { ...REFUSALS, ...REFUSALS_OF_ONE },
  },
  revoke: {
    summary: 'Ends all of the user’s sessions',
    headers: [{ ...SESSION_HEADER, required: false }],
    body: body({ exceptCurrent: flag('All but the one that the header names.') }),
    answer: { status: 200, description: 'Done.', schema: object({ revoked: count(0, 'How many were ended.') }) },
    refusals: { ...REFUSALS, ...REFUSALS_OF_BODIES, ...REFUSALS_OF_ONE },
  },
};

const CREATE_WITH_ID = body({ id: text('Of the new session.'), surfaceId: SURFACE, metadata: METADATA });

/** Describes a handler to @nestjs/swagger, where that is installed. @param clientIds whether a client may choose ids */
export function describedAs(operation: Operation, clientIds = false): MethodDecorator {
  const doc = DOCS[operation];
  return documented({
    tag: 'sessions',
    id: `${operation}Session${operation === 'list' || operation === 'revoke' ? 's' : ''}`,
    ...doc,
    ...(clientIds ? { body: CREATE_WITH_ID } : {}),
    error: ERROR_SCHEMA,
  });
}
