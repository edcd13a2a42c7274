import { SESSION_STATES } from '../../ledger/session.js';
import {
  anything,
  BODY_REFUSALS,
  documented,
  ERROR_SCHEMA,
  flag,
  count,
  listOf,
  NAME,
  object,
  oneOf,
  REFUSALS,
  type RouteDoc,
  type Schema,
  text,
  time,
} from '../controllers/openapi.js';

type Operation = 'send' | 'sendTo' | 'resume' | 'resumeRun' | 'stop' | 'messages' | 'list' | 'remove';

const CHAT_ID: Schema = { name: 'id', schema: text('The chat: the id of its session, or a surface of it.') };

const MESSAGE = object(
  {
    id: NAME,
    role: oneOf(['system', 'user', 'assistant']),
    metadata: anything('Metadata of the message.'),
    parts: listOf(object({ type: NAME }), 'The parts: text, files, tool calls and others.'),
  },
  ['id', 'role', 'parts'],
);

const CHAT = object({
  id: text('The id of the chat.'),
  state: oneOf(SESSION_STATES),
  createdAt: time('Time of creation.'),
  lastActivityAt: time('Time of the last activity.'),
  metadata: anything('Metadata of the application and the user.'),
});

const REQUEST = object(
  {
    id: text('The chat. A new id begins a new chat. Optional if the URL names the chat.'),
    messages: listOf(
      MESSAGE,
      'The messages of the front end. Only the last one is read, or the answer that messageId names.',
    ),
    message: { ...MESSAGE, description: 'The message to read, instead of all messages.' },
    trigger: { ...oneOf(['submit-message', 'regenerate-message']), description: 'Default: submit-message.' },
    messageId: text('The message to edit or to answer again, or the answer with an approval or an output of a tool.'),
    orchestrator: text('Name of the orchestrator. Default: the only orchestrator of this controller.'),
  },
  [],
);

const STOP = object(
  { messageId: text('The message of the user to cancel, or the answer to stop. Default: the current answer.') },
  [],
);

const PAGE: Schema = { name: 'limit', required: false, schema: { ...count(1, 'Default 50.'), maximum: 200 } };
const START: Schema = {
  name: 'startIndex',
  required: false,
  schema: {
    type: 'integer',
    description:
      'The number of chunks that the client has received of the response. Negative: replays the response. Requires protocol 7.',
  },
};

const STREAM: RouteDoc['answer'] = {
  status: 200,
  description: 'The UI message stream of the AI SDK, as Server-Sent Events.',
  headers: {
    'x-workflow-run-id': {
      description: 'Names the response, so that WorkflowChatTransport can resume it.',
      schema: NAME,
    },
  },
  content: { 'text/event-stream': { schema: NAME } },
};

const CHAT_REFUSALS: Readonly<Record<number, string>> = {
  ...REFUSALS,
  400: 'The request is invalid.',
  410: 'The session of the chat has expired.',
};
const SEND_REFUSALS: Readonly<Record<number, string>> = {
  ...CHAT_REFUSALS,
  ...BODY_REFUSALS,
  404: 'The chat belongs to another user, or the message or the answer has no turn.',
  409: 'The session is busy, or the turn that asked the user has ended.',
  422: 'The chat already has this message with other metadata or another orchestrator.',
  429: 'Too many turns are queued, or too many streams are open. Retry later.',
};
const STREAM_REFUSALS: Readonly<Record<number, string>> = {
  ...CHAT_REFUSALS,
  204: 'The chat has no open turn.',
  404: 'The response does not exist or belongs to another user.',
  429: 'Too many streams are open. Close one of them.',
};

type Doc = Omit<RouteDoc, 'tag' | 'id' | 'error' | 'refusals'> & Partial<Pick<RouteDoc, 'refusals'>>;

const DOCS: Readonly<Record<Operation, Doc>> = {
  send: {
    summary: 'Send a message, an edit, an approval or the output of a tool, and stream the answer',
    body: REQUEST,
    answer: STREAM,
    refusals: SEND_REFUSALS,
  },
  sendTo: {
    summary: 'Send to the chat that the URL names',
    params: [CHAT_ID],
    body: REQUEST,
    answer: STREAM,
    refusals: SEND_REFUSALS,
  },
  resume: {
    summary: 'Stream the current answer of a chat from its start',
    params: [CHAT_ID],
    query: [START],
    answer: STREAM,
    refusals: STREAM_REFUSALS,
  },
  resumeRun: {
    summary: 'Continue a response of a chat',
    params: [CHAT_ID, { name: 'run', schema: text('The x-workflow-run-id of the response.') }],
    query: [START],
    answer: STREAM,
    refusals: STREAM_REFUSALS,
  },
  stop: {
    summary: 'Stop the current answer and keep what was shown, or cancel a message before it is answered',
    params: [CHAT_ID],
    body: STOP,
    isBodyOptional: true,
    answer: {
      status: 200,
      description: 'Whether there was an answer to stop, or a message to cancel.',
      schema: object({ stopped: flag('False if the chat had no open turn, or none with the given message.') }),
    },
    refusals: { ...CHAT_REFUSALS, ...BODY_REFUSALS },
  },
  messages: {
    summary: 'List the messages of a chat, the latest page first',
    params: [CHAT_ID],
    query: [{ name: 'before', required: false, schema: text('The `before` of the page of later messages.') }, PAGE],
    answer: {
      status: 200,
      description: 'A page of messages in their order. An unknown chat has none.',
      schema: object(
        {
          messages: listOf(MESSAGE),
          before: text('Value for `before` of the next request. Absent on the first page of the chat.'),
        },
        ['messages'],
      ),
    },
  },
  list: {
    summary: 'List the chats of the user, latest activity first',
    query: [{ name: 'cursor', required: false, schema: text('The `nextCursor` of the previous page.') }, PAGE],
    answer: {
      status: 200,
      description: 'A page of chats.',
      schema: object(
        {
          chats: listOf(CHAT),
          nextCursor: text('Value for `cursor` of the next request. Absent on the last page.'),
        },
        ['chats'],
      ),
    },
  },
  remove: {
    summary: 'Delete a chat with all its data',
    params: [CHAT_ID],
    answer: { status: 204, description: 'The chat does not exist any more.' },
  },
};

const IDS: Readonly<Record<Operation, string>> = {
  send: 'sendChatMessage',
  sendTo: 'sendMessageToChat',
  resume: 'resumeChat',
  resumeRun: 'resumeChatResponse',
  stop: 'stopChat',
  messages: 'listChatMessages',
  list: 'listChats',
  remove: 'deleteChat',
};

/** Describes a handler for @nestjs/swagger, if that is installed. */
export function describedAs(operation: Operation): MethodDecorator {
  return documented({
    tag: 'chat',
    id: IDS[operation],
    refusals: CHAT_REFUSALS,
    ...DOCS[operation],
    error: ERROR_SCHEMA,
  });
}
