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

type Operation = 'submit' | 'list' | 'get' | 'cancel' | 'events';

const STATUS = oneOf(TURN_STATUSES);

const TOKENS: Schema = { type: 'number', minimum: 0 };

const TURN = object(
  {
    id: NAME,
    sessionId: NAME,
    position: count(1, 'The place in the session’s lane: the order of acceptance.'),
    orchestrator: NAME,
    status: STATUS,
    acceptedAt: time('When it was accepted.'),
    startedAt: time('When it first began; absent until then.'),
    settledAt: time('When it was over; absent until then.'),
    waitingFor: object({ signal: text('What a waiting turn waits for.') }),
    turnIndex: count(0, 'The number of the turn in its session and orchestrator; absent unless it succeeded.'),
    reply: { type: 'string', nullable: true, description: 'The answer; absent unless the turn succeeded.' },
    data: { description: 'Any JSON that the answer has besides.' },
    usage: {
      ...object({ promptTokens: TOKENS, completionTokens: TOKENS, totalTokens: TOKENS }),
      description: 'The tokens that models took, over all attempts; absent when no model was counted.',
    },
    code: text('Of a turn that failed, was cancelled or superseded: why.'),
    supersededBy: text('The turn that took the place of a superseded one.'),
  },
  ['id', 'sessionId', 'position', 'orchestrator', 'status', 'acceptedAt'],
);

const TURN_REFUSALS: Readonly<Record<number, string>> = {
  ...REFUSALS,
  400: 'The request is wrong, or names no session.',
  404: 'There is no such session or turn, or it is somebody else’s.',
  410: 'The session is expired.',
};

const TURN_ID: Schema = { name: 'turnId', schema: NAME };

type Doc = Omit<RouteDoc, 'tag' | 'id' | 'error' | 'refusals'> & Partial<Pick<RouteDoc, 'refusals'>>;

const one = (status: number, description: string): Doc['answer'] => ({ status, description, schema: TURN });

const DOCS: Readonly<Record<Operation, Doc>> = {
  submit: {
    summary: 'Says something in the session',
    headers: [SESSION_HEADER, IDEMPOTENCY_HEADER],
    body: body(
      {
        text: text('What the user said.'),
        content: listOf(object({ type: NAME }), 'The parts of a message that is more than text.'),
        metadata: anything('Stored with the message.'),
        orchestrator: text('Who is spoken to. Default: the only one.'),
        whenBusy: {
          ...oneOf(WHEN_BUSY),
          description: 'What to do when the session is busy, where clients may say so.',
        },
      },
      ['text'],
    ),
    answer: {
      ...one(202, 'The turn, which is done in its order.'),
      headers: { Location: { description: 'Its address.', schema: NAME } },
    },
    refusals: {
      ...TURN_REFUSALS,
      ...BODY_REFUSALS,
      ...KEY_REFUSALS,
      409: 'The session is busy.',
      429: 'Too many turns are queued. Send it again later.',
    },
  },
  list: {
    summary: 'The turns of the session, in their order',
    headers: [SESSION_HEADER],
    query: [
      { name: 'status', required: false, schema: listOf(STATUS) },
      { name: 'after', required: false, schema: count(0, 'Turns at later positions than this.') },
      { name: 'limit', required: false, schema: { ...count(1, 'Default 50.'), maximum: 200 } },
    ],
    answer: {
      status: 200,
      description: 'A page.',
      schema: object({ turns: listOf(TURN), nextAfter: count(1, 'For after; absent on the last page.') }, ['turns']),
    },
  },
  get: {
    summary: 'A turn of the session',
    headers: [SESSION_HEADER],
    params: [TURN_ID],
    answer: one(200, 'The turn.'),
  },
  cancel: {
    summary: 'Cancels a turn of the session',
    headers: [SESSION_HEADER],
    params: [TURN_ID],
    answer: one(200, 'The turn as it is now: one that runs settles soon.'),
  },
  events: {
    summary: 'What a turn emits while it runs, and at last how it ended',
    headers: [
      SESSION_HEADER,
      { name: 'Last-Event-ID', required: false, description: 'Goes on after this event. Default: from the first.' },
    ],
    params: [TURN_ID],
    answer: { status: 200, description: 'Server-Sent Events.', content: { 'text/event-stream': { schema: NAME } } },
    refusals: {
      ...TURN_REFUSALS,
      429: 'Too many streams are open. Close one of them.',
      204: 'The client has had the last event.',
    },
  },
};

/** Describes a handler to @nestjs/swagger, where that is installed. */
export function describedAs(operation: Operation): MethodDecorator {
  return documented({
    tag: 'turns',
    id: operation === 'list' ? 'listTurns' : operation === 'events' ? 'turnEvents' : `${operation}Turn`,
    refusals: TURN_REFUSALS,
    ...DOCS[operation],
    error: ERROR_SCHEMA,
  });
}
