import { TURN_STATUSES, WHEN_BUSY } from '../../ledger/turn.js';
import {
  anything,
  body,
  BODY_REFUSALS,
  count,
  documented,
  ERROR_SCHEMA,
  IDEMPOTENCY_HEADER,
  KEY_REFUSALS,
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

type Operation = 'submit' | 'list' | 'messages' | 'get' | 'cancel' | 'events';

const STATUS = oneOf(TURN_STATUSES);

const TOKENS: Schema = { type: 'number', minimum: 0 };

const PARTS = listOf(object({ type: NAME }), 'The parts of a multi-part message: text, files, data-* and others.');
const METADATA = anything('Metadata stored with the message.');

const TURN = object(
  {
    id: NAME,
    sessionId: NAME,
    position: count(1, 'Position of the turn in its session, in order of acceptance.'),
    orchestrator: NAME,
    status: STATUS,
    input: {
      ...object({ text: text('The text of the message.'), content: PARTS, metadata: METADATA }, ['text']),
      description: "The user's message. Absent if the turn is a command.",
    },
    acceptedAt: time('Time of acceptance.'),
    startedAt: time('Time of the first attempt. Absent until then.'),
    settledAt: time('Time when the turn settled. Absent until then.'),
    waitingFor: object({ signal: text('The signal that a waiting turn expects.') }),
    turnIndex: count(0, 'Index of the turn in its session and orchestrator. Absent unless the turn succeeded.'),
    reply: { type: 'string', nullable: true, description: 'The reply. Absent unless the turn succeeded.' },
    data: { description: 'Additional JSON data of the reply.' },
    usage: {
      ...object(
        {
          promptTokens: TOKENS,
          completionTokens: TOKENS,
          totalTokens: TOKENS,
          unknownCalls: count(1, 'The number of model calls whose tokens are unknown. Absent if it is 0.'),
        },
        ['promptTokens', 'completionTokens', 'totalTokens'],
      ),
      description: 'Tokens used by models in all attempts. Absent if no usage was recorded.',
    },
    code: text('Reason code of a failed, cancelled or superseded turn.'),
    supersededBy: text('Id of the turn that replaced a superseded turn.'),
  },
  ['id', 'sessionId', 'position', 'orchestrator', 'status', 'acceptedAt'],
);

const MESSAGE = object(
  {
    id: NAME,
    role: oneOf(['user', 'assistant']),
    content: {
      oneOf: [NAME, listOf(object({ type: NAME }))],
      description: 'A string, or the parts of a multi-part message.',
    },
    metadata: METADATA,
    createdAt: time('Time when the message was stored. Absent while it is only the input of its turn.'),
  },
  ['id', 'role', 'content'],
);

const CONVERSATION_TURN = object({ ...(TURN.properties as Schema), messages: listOf(MESSAGE) }, ['messages']);

const TURN_REFUSALS: Readonly<Record<number, string>> = {
  ...REFUSALS,
  400: 'The request is invalid, or the session id is missing.',
  404: 'The session or turn does not exist or belongs to another user.',
  410: 'The session has expired.',
};

const TURN_ID: Schema = { name: 'turnId', schema: NAME };

type Doc = Omit<RouteDoc, 'tag' | 'id' | 'error' | 'refusals'> & Partial<Pick<RouteDoc, 'refusals'>>;

const one = (status: number, description: string): Doc['answer'] => ({ status, description, schema: TURN });

const DOCS: Readonly<Record<Operation, Doc>> = {
  submit: {
    summary: 'Submit a user message to the session',
    headers: [SESSION_HEADER, IDEMPOTENCY_HEADER],
    body: body(
      {
        text: text('The text of the message.'),
        content: PARTS,
        metadata: METADATA,
        orchestrator: text('Name of the orchestrator. Default: the only orchestrator of this controller.'),
        whenBusy: {
          ...oneOf(WHEN_BUSY),
          description: 'How the message is handled if the session is busy. Only for policies that clients may choose.',
        },
      },
      ['text'],
    ),
    answer: {
      ...one(202, 'The accepted turn. Turns of a session run in order.'),
      headers: { Location: { description: 'URL of the turn.', schema: NAME } },
    },
    refusals: {
      ...TURN_REFUSALS,
      ...BODY_REFUSALS,
      ...KEY_REFUSALS,
      409: 'The session is busy.',
      429: 'Too many turns are queued. Retry later.',
    },
  },
  list: {
    summary: 'List turns of the session in order',
    headers: [SESSION_HEADER],
    query: [
      { name: 'status', required: false, schema: listOf(STATUS) },
      { name: 'after', required: false, schema: count(0, 'Returns only turns after this position.') },
      { name: 'limit', required: false, schema: { ...count(1, 'Default 50.'), maximum: 200 } },
    ],
    answer: {
      status: 200,
      description: 'A page of turns.',
      schema: object(
        { turns: listOf(TURN), nextAfter: count(1, 'Value for `after` of the next request. Absent on the last page.') },
        ['turns'],
      ),
    },
  },
  messages: {
    summary: 'List the messages of the session in order, grouped by turn, the latest page first',
    headers: [SESSION_HEADER],
    query: [
      { name: 'before', required: false, schema: text('The `before` of the page of later turns.') },
      { name: 'limit', required: false, schema: { ...count(1, 'Turns per page. Default 50.'), maximum: 200 } },
    ],
    answer: {
      status: 200,
      description:
        'A page of turns with their messages. Open, failed and cancelled turns have the message of the user.',
      schema: object(
        {
          turns: listOf(CONVERSATION_TURN),
          before: text('Value for `before` of the request for earlier turns. Absent on the first page.'),
        },
        ['turns'],
      ),
    },
  },
  get: {
    summary: 'Get a turn of the session',
    headers: [SESSION_HEADER],
    params: [TURN_ID],
    answer: one(200, 'The turn.'),
  },
  cancel: {
    summary: 'Cancel a turn of the session',
    headers: [SESSION_HEADER],
    params: [TURN_ID],
    answer: one(200, 'The current turn. A running turn settles soon.'),
  },
  events: {
    summary: 'Stream the events of a turn, ending with its outcome',
    headers: [
      SESSION_HEADER,
      {
        name: 'Last-Event-ID',
        required: false,
        description: 'Resumes after this event. Default: starts with the first event.',
      },
    ],
    params: [TURN_ID],
    answer: { status: 200, description: 'Server-Sent Events.', content: { 'text/event-stream': { schema: NAME } } },
    refusals: {
      ...TURN_REFUSALS,
      429: 'Too many streams are open. Close one of them.',
      204: 'The client has already received the last event.',
    },
  },
};

/** Names of operations that are not about one turn. */
const IDS: Readonly<Partial<Record<Operation, string>>> = {
  list: 'listTurns',
  messages: 'listTurnMessages',
  events: 'turnEvents',
};

/** Describes a handler for @nestjs/swagger, if that is installed. */
export function describedAs(operation: Operation): MethodDecorator {
  return documented({
    tag: 'turns',
    id: IDS[operation] ?? `${operation}Turn`,
    refusals: TURN_REFUSALS,
    ...DOCS[operation],
    error: ERROR_SCHEMA,
  });
}
