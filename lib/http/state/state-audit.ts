import { Logger, type OnApplicationShutdown } from '@nestjs/common';
import { loggedId } from '../../common/log-details.js';
import { isId } from '../../common/ids.js';
import { type JsonObject, toJsonObject } from '../../common/json.js';
import { type ResetStateRequest, type StateRequest } from '../../state/state-request.js';
import { RefusalLog } from './refusal-log.js';
import { type StateCall } from './state-call.js';
import { type StateEvent, type StateEvents } from './state-events.js';
import { toStateErrorBody, StateStoresFailedError } from './state-http.errors.js';

type Outcome = Pick<StateEvent, 'outcome' | 'statusCode' | 'code' | 'cleared' | 'compacted'>;

/**
 * Reports each call once, as an event and as a log line. Rejected calls without a principal are counted, with one line
 * per minute and operation.
 */
export class StateAudit implements OnApplicationShutdown {
  private readonly logger = new Logger('AgentSessionsState');
  private readonly refusals = new RefusalLog(this.logger);

  constructor(private readonly events: StateEvents) {}

  done(call: StateCall, { cleared, compacted }: Pick<StateEvent, 'cleared' | 'compacted'>): void {
    this.report(call, { outcome: 'done', statusCode: 200, cleared, compacted });
  }

  repeated(call: StateCall): void {
    this.report(call, { outcome: 'repeated', statusCode: 200, cleared: [], compacted: [] });
  }

  /** @param body the raw body; if it is invalid, the session that it names is still reported */
  refused(call: StateCall, error: unknown, body?: unknown): void {
    const { statusCode, code } = toStateErrorBody(error);
    const { cleared, compacted } =
      error instanceof StateStoresFailedError ? error.result : { cleared: [], compacted: [] };
    this.report(call, { outcome: statusCode < 500 ? 'refused' : 'failed', statusCode, code, cleared, compacted }, body);
  }

  onApplicationShutdown(): void {
    this.refusals.close();
  }

  private report(call: StateCall, outcome: Outcome, body?: unknown): void {
    if (call.reported) return;
    call.reported = true;
    const { operation, principal, request, startedAt } = call;
    const event: StateEvent = {
      type: operation,
      ...outcome,
      ...(principal ? { principal: withoutCapabilities(principal) } : {}),
      ...(request ? named(request) : sessionIn(body)),
      durationMs: Math.round(performance.now() - startedAt),
    };
    if (event.outcome === 'refused' && !principal) this.refusals.add(operation, event.code ?? '', lineOf(event));
    else this.logger.log(lineOf(event));
    this.events.emit(event);
  }
}

function withoutCapabilities({ userId, workspaceId }: NonNullable<StateEvent['principal']>): StateEvent['principal'] {
  return { userId, ...(workspaceId === undefined ? {} : { workspaceId }) };
}

function named(request: StateRequest): Partial<StateEvent> {
  const { sessionId, stores, dryRun, all, metadata } = request as ResetStateRequest;
  return {
    ...(sessionId === undefined ? {} : { sessionId }),
    ...(all === undefined ? {} : { all }),
    ...(stores === undefined ? {} : { stores }),
    ...(dryRun === undefined ? {} : { dryRun }),
    ...(metadata === undefined ? {} : { metadata: toJsonObject(metadata, 'metadata') }),
  };
}

function sessionIn(body: unknown): Partial<StateEvent> {
  const { sessionId } = (body ?? {}) as JsonObject;
  return isId(sessionId) ? { sessionId } : {};
}

function lineOf({ type, outcome, code, sessionId, all, principal, durationMs }: StateEvent): string {
  const what = sessionId === undefined ? (all ? 'all sessions' : 'no session') : `session ${loggedId(sessionId)}`;
  const who = principal ? `user ${loggedId(principal.userId)}` : 'an unknown user';
  return `${type} of ${what} by ${who}: ${outcome}${code === undefined ? '' : ` (${code})`}, ${durationMs} ms.`;
}
