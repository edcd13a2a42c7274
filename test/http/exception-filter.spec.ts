import 'reflect-metadata';
import {
  type ArgumentsHost,
  Catch,
  Controller,
  type ExceptionFilter,
  Get,
  ImATeapotException,
  Param,
  UseFilters,
} from '@nestjs/common';
import * as library from 'nestjs-agent-sessions';
import {
  CheckpointNotFoundError,
  CompactionError,
  HandlerError,
  IdempotencyConflictError,
  InvalidInputError,
  LaneDrainingError,
  LaneFullError,
  NothingToStreamError,
  NothingToUndoError,
  OrchestratorDriftError,
  PermanentTurnError,
  ProcessLimitError,
  SessionBusyError,
  SessionConflictError,
  SessionNotFoundError,
  SessionsConfigurationError,
  SessionsError,
  SessionsModule,
  SessionStateError,
  ShuttingDownError,
  StateConflictError,
  StateModuleError,
  StateSerializationError,
  StoreRejectedError,
  StoreUnavailableError,
  SurfaceConflictError,
  SurfaceLimitError,
  TaskError,
  TokenBudgetExceededError,
  TooLargeError,
  ToolFailedError,
  ToolNotAllowedError,
  type Turn,
  TurnCancelledError,
  TurnFailedError,
  TurnNotFoundError,
  TurnReentryError,
  TurnSettledError,
  TurnStoppedError,
  TurnSupersededError,
  TurnTimeoutError,
  TurnWaitTimeoutError,
  UnauthenticatedError,
  UnreadableRecordError,
} from 'nestjs-agent-sessions';
import { CheckpointConflictError, StateResetError, TurnFencedError } from 'nestjs-agent-sessions/adapter';
import { type StateOperationResult, StateRequestError, StateStoresFailedError } from 'nestjs-agent-sessions/http';
import request from 'supertest';
import { type HttpApp, PLATFORMS } from './http-app.js';

const SECRET = 'postgres://desk:hunter2@db/desk';

const turn = {
  id: 't1',
  sessionId: 's1',
  status: 'failed',
  error: { name: 'Error', message: SECRET },
} as Turn;
const result: StateOperationResult = {
  operation: 'reset',
  sessionId: 's1',
  stores: [],
  cleared: [],
  compacted: [],
  missing: [],
  errors: [],
  metadata: {},
};
const ofSession = { sessionId: 's1' };
const ofTurn = { sessionId: 's1', turnId: 't1' };
const INTERNAL = { message: 'Internal server error' };

/** Every error of the package with its status and the fields of its body besides `statusCode`, `code` and `message`. */
const TABLE: readonly [SessionsError, number, string, object?][] = [
  [new InvalidInputError('input.text', 'must be a string.'), 400, 'INVALID_INPUT'],
  [new StateSerializationError('state.at', 'an instance of Date'), 400, 'STATE_NOT_SERIALIZABLE'],
  [new InvalidInputError('sessionId', 'is missing.', 'SESSION_ID_MISSING'), 400, 'SESSION_ID_MISSING'],
  [new UnauthenticatedError(), 401, 'UNAUTHENTICATED'],
  [new StateRequestError('FORBIDDEN', 'No.'), 403, 'FORBIDDEN'],
  [new SessionNotFoundError('s1'), 404, 'SESSION_NOT_FOUND', ofSession],
  [new TurnNotFoundError('t1'), 404, 'TURN_NOT_FOUND', { turnId: 't1' }],
  [new SessionConflictError('s1'), 409, 'SESSION_CONFLICT', ofSession],
  [new SessionStateError('s1', 'suspended', 'use'), 409, 'SESSION_STATE', ofSession],
  [new SessionStateError('s1', 'expired', 'touch'), 410, 'SESSION_STATE', ofSession],
  [new SurfaceLimitError('s1', 16), 409, 'SURFACE_LIMIT', ofSession],
  [new SurfaceConflictError('s1', 'web', 's2'), 409, 'SURFACE_CONFLICT', ofSession],
  [new CheckpointConflictError('desk', 's1', 3), 409, 'CHECKPOINT_CONFLICT', ofSession],
  [new CheckpointNotFoundError('desk', 's1'), 404, 'CHECKPOINT_NOT_FOUND', ofSession],
  [new CheckpointNotFoundError('desk', 's1', 3, 'CHECKPOINT_PRUNED'), 410, 'CHECKPOINT_PRUNED', ofSession],
  [new NothingToUndoError('desk', 's1'), 409, 'NOTHING_TO_UNDO', ofSession],
  [new SessionConflictError('s1', 'SESSION_NOT_EMPTY'), 409, 'SESSION_NOT_EMPTY', ofSession],
  [new SessionBusyError('s1', 't1', true, '2026-11-21T08:00:00.000Z'), 409, 'SESSION_BUSY', ofTurn],
  [new TurnSettledError(turn), 409, 'TURN_SETTLED', ofTurn],
  [new TurnCancelledError('s1', 't1'), 409, 'TURN_CANCELLED', ofTurn],
  [new TurnSupersededError('s1', 't1', 't2'), 409, 'TURN_SUPERSEDED', ofTurn],
  [new TurnReentryError('s1'), 409, 'TURN_REENTRY', ofSession],
  [new OrchestratorDriftError('aaaa', 'bbbb', 's1'), 409, 'ORCHESTRATOR_DRIFT', ofSession],
  [new TooLargeError('The input', 20, 10), 413, 'TOO_LARGE'],
  [new IdempotencyConflictError('s1', 't1'), 422, 'IDEMPOTENCY_CONFLICT', ofTurn],
  [new StateRequestError('IDEMPOTENCY_CONFLICT', 'No.'), 422, 'IDEMPOTENCY_CONFLICT'],
  [new StateRequestError('REQUEST_IN_PROGRESS', 'No.', 1000), 409, 'REQUEST_IN_PROGRESS', { retryAfter: 1 }],
  [new InvalidInputError('body', 'must be JSON.', 'UNSUPPORTED_MEDIA_TYPE'), 415, 'UNSUPPORTED_MEDIA_TYPE'],
  [
    new StateStoresFailedError({ ...result, errors: [{ store: 'a', code: 'STATE_CONFLICT', message: 'It moved.' }] }),
    409,
    'STATE_CONFLICT',
  ],
  [new LaneFullError('s1', 100), 429, 'LANE_FULL', { ...ofSession, retryAfter: 1 }],
  [new ToolNotAllowedError('s1', 'pay', 'browse', ['search']), 403, 'TOOL_NOT_ALLOWED', ofSession],
  [new InvalidInputError('step', 'is unknown.', 'UNKNOWN_STEP'), 400, 'UNKNOWN_STEP', {}],
  [new TokenBudgetExceededError('s1', 12, 10), 429, 'TOKEN_BUDGET_EXCEEDED', ofSession],
  [new CompactionError('COMPACTION_NOT_CONFIGURED', 'No.'), 400, 'COMPACTION_NOT_CONFIGURED'],
  [new CompactionError('COMPACTION_BUSY', 'No.', { sessionId: 's1' }), 409, 'COMPACTION_BUSY', ofSession],
  [
    new CompactionError('COMPACTION_FAILED', 'No.', { sessionId: 's1', cause: new Error(SECRET) }),
    502,
    'COMPACTION_FAILED',
    ofSession,
  ],
  [new StateConflictError('s1', 200), 409, 'STATE_CONFLICT', ofSession],
  [new TaskError('TASK_NOT_FOUND', 's1', 'pay'), 404, 'TASK_NOT_FOUND', ofSession],
  [new TaskError('TASK_CONFLICT', 's1', 'pay'), 409, 'TASK_CONFLICT', ofSession],
  [
    new TaskError('TASK_TRANSITION', 's1', 'pay', { from: 'completed', to: 'working' }),
    409,
    'TASK_TRANSITION',
    ofSession,
  ],
  [new StateModuleError('CONVERSATION_NOT_RESET', 'conversation', 'No.'), 409, 'CONVERSATION_NOT_RESET'],
  [new StateModuleError('STATE_MODULE_TIMEOUT', 'cart', 'No.', { hook: 'reset' }), 504, 'STATE_MODULE_TIMEOUT'],
  [
    new UnreadableRecordError('orchestration entry', 'step-done', { rules: { written: 3, known: 2 } }),
    503,
    'NEWER_STATE',
  ],
  [new StateModuleError('STATE_MODULE_DISABLED', 'tools', SECRET), 500, 'STATE_MODULE_DISABLED', INTERNAL],
  [new TurnFailedError(turn), 500, 'TURN_FAILED', ofTurn],
  [new TurnTimeoutError('t1', 500), 500, 'TURN_TIMEOUT', { turnId: 't1', ...INTERNAL }],
  [new TurnTimeoutError('t1', 500, 'go'), 500, 'TURN_SIGNAL_TIMEOUT', { turnId: 't1', ...INTERNAL }],
  [new TurnFencedError('s1', 't1', 7), 500, 'TURN_FENCED', { ...ofTurn, ...INTERNAL }],
  [new StateResetError('s1', ['agent-sessions:tools']), 500, 'STATE_RESET', { ...ofSession, ...INTERNAL }],
  [new SessionsConfigurationError(SECRET), 500, 'CONFIGURATION', INTERNAL],
  [
    new SessionsConfigurationError(SECRET, { unknown: { orchestrator: 'desk', known: [SECRET] } }),
    500,
    'UNKNOWN_ORCHESTRATOR',
    INTERNAL,
  ],
  [new ProcessLimitError('TOO_MANY_STREAMS', 16), 429, 'TOO_MANY_STREAMS', { retryAfter: 1 }],
  [new ProcessLimitError('TOO_MANY_WAITING_PARENTS', 1000), 503, 'TOO_MANY_WAITING_PARENTS', { retryAfter: 1 }],
  [new ToolFailedError('pay', 'call 1', SECRET), 500, 'TOOL_FAILED', INTERNAL],
  [new HandlerError('TOOL_CALL_CONFLICT', 'No.', { details: { callId: 'call 1' } }), 409, 'TOOL_CALL_CONFLICT'],
  [new UnreadableRecordError('turn', 't1'), 500, 'CORRUPT_RECORD', INTERNAL],
  [new HandlerError('NO_INTENT', SECRET), 500, 'NO_INTENT', INTERNAL],
  [new HandlerError('STATE_SCHEMA', SECRET, { details: { path: SECRET } }), 500, 'STATE_SCHEMA', INTERNAL],
  [new TurnStoppedError('shutdown'), 500, 'TURN_STOPPED', INTERNAL],
  [new PermanentTurnError(SECRET), 500, 'PERMANENT_TURN_ERROR', INTERNAL],
  [
    new StoreUnavailableError(SECRET, { cause: new Error(SECRET) }),
    503,
    'STORE_UNAVAILABLE',
    { message: 'The store is unavailable. Retry later.', retryAfter: 1 },
  ],
  [new StoreRejectedError('The store rejects a value.', SECRET), 500, 'STORE_REJECTED', INTERNAL],
  [new LaneDrainingError('s1'), 503, 'LANE_DRAINING', { ...ofSession, retryAfter: 5 }],
  [new ShuttingDownError('s1', 't1'), 503, 'SHUTTING_DOWN', ofTurn],
  [new TurnWaitTimeoutError('s1', 't1', 500), 504, 'TURN_WAIT_TIMEOUT', ofTurn],
];

const ROWS = TABLE.map(([error, status, code, more = {}], index) => {
  const body: object = { statusCode: status, code, message: error.message, ...more };
  return { name: error.constructor.name, status, code, path: `/throw/${index}`, body };
});

@Catch(SessionNotFoundError)
class OwnFilter implements ExceptionFilter<SessionNotFoundError> {
  catch(_error: SessionNotFoundError, host: ArgumentsHost): void {
    const response = host.switchToHttp().getResponse<{ status(code: number): { send(body: object): void } }>();
    response.status(404).send({ own: true });
  }
}

@Controller('throw')
class ThrowingController {
  @Get('teapot')
  teapot(): never {
    throw new ImATeapotException('short and stout');
  }

  @Get('unexpected')
  unexpected(): never {
    throw new Error(SECRET);
  }

  @Get('own')
  @UseFilters(OwnFilter)
  own(): never {
    throw new SessionNotFoundError('s1');
  }

  @Get(':row')
  row(@Param('row') row: string): never {
    throw TABLE[Number(row)]?.[0] ?? new Error('no such row');
  }
}

it('NST-15 covers every error of the package in the table', () => {
  const errors = Object.values<unknown>(library).filter(
    (value) => typeof value === 'function' && value.prototype instanceof SessionsError,
  );
  // This error has no body, see turn-events.spec.ts and chat-controller.spec.ts.
  const named = new Set([...TABLE.map(([error]) => error.constructor), NothingToStreamError]);

  expect(errors.filter((error) => !named.has(error as never))).toEqual([]);
});

it('NST-15 lists the codes of every class', () => {
  const wrong = TABLE.filter(([error]) => {
    const { codes } = error.constructor as typeof SessionsError;
    return !(error instanceof StateStoresFailedError) && !codes.includes(error.code);
  });

  expect(wrong).toEqual([]);
});

describe.each(PLATFORMS)('domain errors over HTTP on $name, without setup by the user', ({ start }) => {
  let app: HttpApp;

  beforeAll(async () => {
    app = await start({ imports: [SessionsModule.forRoot()], controllers: [ThrowingController] });
  });

  afterAll(() => app.close());

  const get = (path: string) => request(app.getHttpServer()).get(path);

  it.each(ROWS)('NST-15 $name: answers $status $code', async ({ path, status, body }) => {
    const answer = await get(path)
      .expect(status)
      .expect('content-type', /^application\/json/);

    expect(answer.body).toEqual(body);
    const { retryAfter } = body as { retryAfter?: number };
    expect(answer.headers['retry-after']).toBe(retryAfter === undefined ? undefined : String(retryAfter));
    // No stack, no cause, no store internals.
    expect(answer.text).not.toContain(SECRET);
    expect(answer.text).not.toContain('.ts');
  });

  it.each(ROWS)('NST-15 $name: formats an RFC 9457 problem on request', async ({ path, body }) => {
    const { statusCode, code, message, ...rest } = body as Record<string, unknown>;

    const answer = await get(path)
      .set('accept', 'application/problem+json, application/json;q=0.5')
      .expect(statusCode as number)
      .expect('content-type', /^application\/problem\+json/);

    expect(JSON.parse(answer.text)).toEqual({
      type: 'about:blank',
      title: code,
      status: statusCode,
      detail: message,
      code,
      ...rest,
    });
  });

  it('NST-15 does not change errors of Nest and of the application', async () => {
    const teapot = await get('/throw/teapot').expect(418);
    const unexpected = await get('/throw/unexpected').expect(500);
    const unknown = await get('/nowhere').expect(404);

    expect(teapot.body).toEqual({ statusCode: 418, error: "I'm a teapot", message: 'short and stout' });
    expect(unexpected.body).toEqual({ statusCode: 500, message: 'Internal server error' });
    expect(unknown.body).toMatchObject({ statusCode: 404, error: 'Not Found' });
  });

  it('NST-15 gives precedence to a filter of the application', async () => {
    const answer = await get('/throw/own').expect(404);

    expect(answer.body).toEqual({ own: true });
  });
});
