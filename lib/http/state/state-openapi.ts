import { type StateOperation } from '../../state/state-report.js';
import { COMPACTION_STRATEGIES } from '../../conversation/compaction-request.js';
import {
  anything,
  body,
  BODY_REFUSALS,
  count,
  documented,
  ERROR,
  ERROR_KEYS,
  flag,
  IDEMPOTENCY_HEADER,
  KEY_REFUSALS,
  listOf,
  NAME,
  object,
  REFUSALS,
  type Schema,
  text,
} from '../controllers/openapi.js';

const COMMON = {
  sessionId: { type: 'string', minLength: 1, maxLength: 200, description: 'Whose state.' },
  stores: { ...listOf(NAME, 'Names of modules. Default: all that are enabled.'), minItems: 1, maxItems: 100 },
  metadata: anything('Yours: the result has it again, and so has the audit.'),
  dryRun: flag('Says what would be done, and does nothing.'),
};

/** What each operation takes. */
const REQUEST_SCHEMAS: Readonly<Record<StateOperation, Schema>> = {
  describe: body({
    ...COMMON,
    includeData: flag('A page of what the modules hold, redacted. Only of a session.'),
    limit: { ...count(1, 'Items of a page, of each module; default 50. Only with includeData.'), maximum: 200 },
    after: text('The next of a module’s page before; names that one module in stores.'),
  }),
  reset: body({ ...COMMON, all: flag('In place of a sessionId: of every session.') }),
  compact: body(
    {
      ...COMMON,
      strategy: { type: 'string', enum: COMPACTION_STRATEGIES, default: 'recent' },
      maxMessages: count(1, 'recent: messages that stay; default 20.'),
      maxTokens: count(1, 'tokens: what the messages that stay may take; default 8,000.'),
      preserveRecent: count(0, 'The last messages, which stay in any case; default 6, recent 1.'),
      summaryMaxTokens: count(1, 'summary: the limit that the summarizer is given.'),
    },
    ['sessionId'],
  ),
};

const STORE_ERROR = object({ store: NAME, code: NAME, message: NAME, retryAfterMs: count(1, 'Milliseconds.') }, [
  'store',
  'code',
  'message',
]);

const RESULT_SCHEMA = object({
  operation: NAME,
  sessionId: { type: 'string', nullable: true },
  stores: listOf(
    object(
      {
        name: NAME,
        enabled: flag('Whether the module is there.'),
        exists: flag('Whether it has something of the session; absent where no session was named.'),
        itemCount: count(0, 'As it is afterwards.'),
        messageCount: count(0, 'As it is afterwards.'),
        windowCount: count(0, 'Messages that windows are cut from, as it is afterwards.'),
        cleared: flag('True only when something was there and is gone.'),
        compacted: flag('True only when something was shortened.'),
        data: object({ items: listOf({}), next: text('For after; absent on the last page.') }, ['items']),
        metadata: anything('What else the module says.'),
        error: STORE_ERROR,
      },
      ['name', 'enabled', 'cleared', 'compacted', 'metadata'],
    ),
  ),
  cleared: listOf(NAME, 'Modules of which something was cleared.'),
  compacted: listOf(NAME, 'Modules of which something was compacted.'),
  missing: listOf(NAME, 'Modules that were asked for and are not enabled.'),
  errors: listOf(STORE_ERROR),
  metadata: anything('The request’s.'),
});

const ERROR_SCHEMA = object(
  {
    ...ERROR,
    result: { ...RESULT_SCHEMA, description: 'What was done all the same, where only some of the modules failed.' },
  },
  ERROR_KEYS,
);

const SUMMARIES: Readonly<Record<StateOperation, string>> = {
  describe: 'What the state modules hold of a session; without one: which modules there are',
  reset: 'Clears the state of a session, or of all',
  compact: 'Makes the conversation of a session shorter',
};

const STATE_REFUSALS: Readonly<Record<number, string>> = {
  ...REFUSALS,
  ...BODY_REFUSALS,
  ...KEY_REFUSALS,
  400: 'The body or the Idempotency-Key is wrong.',
  403: 'A capability is missing.',
  404: 'There is no such session, or it is somebody else’s.',
  409: 'Somebody else is at it. Send it again later.',
  504: 'A state module did not answer in time.',
};

/** Describes a handler to @nestjs/swagger, where that is installed. */
export function describedAs(operation: StateOperation): MethodDecorator {
  return documented({
    tag: 'state',
    id: `${operation}State`,
    summary: SUMMARIES[operation],
    headers: [IDEMPOTENCY_HEADER],
    body: REQUEST_SCHEMAS[operation],
    answer: { status: 200, description: 'Done.', schema: RESULT_SCHEMA },
    refusals: STATE_REFUSALS,
    error: ERROR_SCHEMA,
  });
}
