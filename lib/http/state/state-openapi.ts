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
  sessionId: { type: 'string', minLength: 1, maxLength: 200, description: 'The session id.' },
  stores: { ...listOf(NAME, 'Names of state modules. Default: all enabled modules.'), minItems: 1, maxItems: 100 },
  metadata: anything('Custom metadata, returned in the result and recorded in the audit log.'),
  dryRun: flag('Reports what the operation would do, without changes.'),
};

/** The request schema of each operation. */
const REQUEST_SCHEMAS: Readonly<Record<StateOperation, Schema>> = {
  describe: body({
    ...COMMON,
    includeData: flag('Includes a page of redacted data of each module. Requires sessionId.'),
    limit: { ...count(1, 'Items per page and module; default 50. Requires includeData.'), maximum: 200 },
    after: text('The next value of the previous page. Requires exactly one module in stores.'),
  }),
  reset: body({ ...COMMON, all: flag('Resets every session. Replaces sessionId.') }),
  compact: body(
    {
      ...COMMON,
      strategy: { type: 'string', enum: COMPACTION_STRATEGIES, default: 'recent' },
      maxMessages: count(1, 'Strategy recent: number of messages to keep; default 20.'),
      maxTokens: count(1, 'Strategy tokens: maximum tokens of the messages to keep; default 8,000.'),
      preserveRecent: count(0, 'Number of last messages that are always kept; default 6, recent 1.'),
      summaryMaxTokens: count(1, 'Strategy summary: the token limit passed to the summarizer.'),
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
        enabled: flag('Whether the module is enabled.'),
        exists: flag('Whether the module has data of the session. Absent without sessionId.'),
        itemCount: count(0, 'Number of items after the operation.'),
        messageCount: count(0, 'Number of messages after the operation.'),
        windowCount: count(0, 'Number of messages available to history windows after the operation.'),
        cleared: flag('True only if existing data was removed.'),
        compacted: flag('True only if data was compacted.'),
        data: object(
          { items: listOf({}), next: text('Value for `after` of the next request. Absent on the last page.') },
          ['items'],
        ),
        metadata: anything('Additional data of the module.'),
        error: STORE_ERROR,
      },
      ['name', 'enabled', 'cleared', 'compacted', 'metadata'],
    ),
  ),
  cleared: listOf(NAME, 'Modules with cleared data.'),
  compacted: listOf(NAME, 'Modules with compacted data.'),
  missing: listOf(NAME, 'Requested modules that are not enabled.'),
  errors: listOf(STORE_ERROR),
  metadata: anything('The metadata of the request.'),
});

const ERROR_SCHEMA = object(
  {
    ...ERROR,
    result: { ...RESULT_SCHEMA, description: 'The partial result if only some modules failed.' },
  },
  ERROR_KEYS,
);

const SUMMARIES: Readonly<Record<StateOperation, string>> = {
  describe: 'Describe the state of a session, or list the state modules',
  reset: 'Reset the state of a session, or of all sessions',
  compact: 'Compact the conversation of a session',
};

const STATE_REFUSALS: Readonly<Record<number, string>> = {
  ...REFUSALS,
  ...BODY_REFUSALS,
  ...KEY_REFUSALS,
  400: 'The body or the Idempotency-Key is invalid.',
  403: 'A capability is missing.',
  404: 'The session does not exist or belongs to another user.',
  409: 'Another request is in progress. Retry later.',
  504: 'A state module did not respond in time.',
};

/** Describes a handler for @nestjs/swagger, if that is installed. */
export function describedAs(operation: StateOperation): MethodDecorator {
  return documented({
    tag: 'state',
    id: `${operation}State`,
    summary: SUMMARIES[operation],
    headers: [IDEMPOTENCY_HEADER],
    body: REQUEST_SCHEMAS[operation],
    answer: { status: 200, description: 'The result of the operation.', schema: RESULT_SCHEMA },
    refusals: STATE_REFUSALS,
    error: ERROR_SCHEMA,
  });
}
