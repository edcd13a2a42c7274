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

const METADATA = anything('Metadata of the application and the user.');
const MERGED = anything('Metadata to merge by top-level key; null removes a key. Optional when unset is present.');
const UNSET = { ...listOf(NAME, 'Keys to remove. Must not overlap with metadata.'), maxItems: 1000 };
const STATE = oneOf(SESSION_STATES);
const SURFACE: Schema = {
  type: 'string',
  minLength: 1,
  maxLength: 256,
  description: 'The surface (device or channel) of the user.',
};

const SESSION = object(
  {
    id: text('The session id. Send it in the x-session-id header.'),
    state: STATE,
    createdAt: time('Time of creation.'),
    lastActivityAt: time('Time of the last activity.'),
    stateChangedAt: time('Time of the last state change. Absent if the state never changed.'),
    attachedSurfaces: listOf(NAME, 'Attached surfaces, in order of attachment.'),
    metadata: METADATA,
  },
  ['id', 'state', 'createdAt', 'lastActivityAt', 'attachedSurfaces', 'metadata'],
);

const REFUSALS_OF_BODIES: Readonly<Record<number, string>> = {
  ...BODY_REFUSALS,
  400: 'The request is invalid.',
  413: 'The body or the resulting metadata is too large.',
};

const REFUSALS_OF_ONE: Readonly<Record<number, string>> = {
  400: 'The request is invalid, or the session id is missing.',
  404: 'The session does not exist or belongs to another user.',
};

const OVER: Readonly<Record<number, string>> = { 410: 'The session has expired.' };

type Doc = Omit<RouteDoc, 'tag' | 'id' | 'error'>;

const one = (status: number, description: string): Doc['answer'] => ({ status, description, schema: SESSION });

const DOCS: Readonly<Record<Operation, Doc>> = {
  create: {
    summary: 'Create a session',
    body: body({ surfaceId: SURFACE, metadata: METADATA }),
    answer: one(201, 'The new session.'),
    refusals: { ...REFUSALS, ...REFUSALS_OF_BODIES, 409: 'The surface or the id belongs to another session.' },
  },
  list: {
    summary: 'List sessions of the user, most recent activity first',
    query: [
      { name: 'state', required: false, schema: listOf(STATE) },
      { name: 'surfaceId', required: false, schema: SURFACE },
      { name: 'limit', required: false, schema: { ...count(1, 'Default 50.'), maximum: 200 } },
    ],
    headers: [{ name: 'x-cursor', required: false, description: 'The nextCursor of the previous page.' }],
    answer: {
      status: 200,
      description: 'A page of sessions.',
      schema: object({ sessions: listOf(SESSION), nextCursor: text('Absent on the last page.') }, ['sessions']),
    },
    refusals: { ...REFUSALS, 400: 'The query is invalid.' },
  },
  get: {
    summary: 'Get the session',
    headers: [SESSION_HEADER],
    answer: one(200, 'The session.'),
    refusals: { ...REFUSALS, ...REFUSALS_OF_ONE, ...OVER },
  },
  update: {
    summary: 'Update the metadata of the session',
    headers: [SESSION_HEADER],
    body: { ...body({ metadata: MERGED, unset: UNSET }), minProperties: 1 },
    answer: one(200, 'The updated session.'),
    refusals: { ...REFUSALS, ...REFUSALS_OF_BODIES, ...REFUSALS_OF_ONE, ...OVER },
  },
  end: {
    summary: 'End the session permanently, with its running turns and streams',
    headers: [SESSION_HEADER],
    answer: { status: 204, description: 'The session has ended.' },
    refusals: { ...REFUSALS, ...REFUSALS_OF_ONE },
  },
  revoke: {
    summary: 'End all sessions of the user',
    headers: [{ ...SESSION_HEADER, required: false }],
    body: body({ exceptCurrent: flag('Keeps the session in the x-session-id header.') }),
    answer: {
      status: 200,
      description: 'The sessions have ended.',
      schema: object({ revoked: count(0, 'Number of ended sessions.') }),
    },
    refusals: { ...REFUSALS, ...REFUSALS_OF_BODIES, ...REFUSALS_OF_ONE },
  },
};

const CREATE_WITH_ID = body({ id: text('The id of the new session.'), surfaceId: SURFACE, metadata: METADATA });

/**
 * Describes a handler for @nestjs/swagger, if that is installed.
 * @param clientIds whether a client may choose ids
 */
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
