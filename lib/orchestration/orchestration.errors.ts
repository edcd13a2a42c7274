import { SessionsError } from '../common/sessions.error.js';
import { HandlerError } from '../ledger/handler.error.js';
import { type Turn } from '../ledger/turn.js';
import { orchestrationMessages } from './orchestration.messages.js';

/** The plan does not allow the tool now (ORC-28). The tool did not run, and the use was not recorded. HTTP 403. */
export class ToolNotAllowedError extends SessionsError {
  static override readonly codes = ['TOOL_NOT_ALLOWED'];
  readonly code = 'TOOL_NOT_ALLOWED';
  readonly permanent = true;
  /** The turn that failed because of it. Absent outside of turns and inside the handler. */
  readonly turnId?: string;

  constructor(
    readonly sessionId: string,
    readonly tool: string,
    /** The active step. */
    readonly step: string,
    /** Names that are allowed now, or patterns with `*`. */
    readonly allowed: readonly string[],
    /** Names or patterns that are excluded from `allowed`. */
    readonly denied: readonly string[] = [],
  ) {
    super(orchestrationMessages.toolNotAllowed(tool, step, allowed, denied));
  }
}

/** The session has used up its token budget (ORC-11). HTTP 429. */
export class TokenBudgetExceededError extends SessionsError {
  static override readonly codes = ['TOKEN_BUDGET_EXCEEDED'];
  readonly code = 'TOKEN_BUDGET_EXCEEDED';
  readonly permanent = true;
  /** The turn that failed because of it. Absent outside of turns and inside the handler. */
  readonly turnId?: string;

  constructor(
    readonly sessionId: string,
    readonly usedTokens: number,
    readonly tokenBudget: number,
  ) {
    super(orchestrationMessages.budgetExceeded(usedTokens, tokenBudget));
  }
}

interface StoredFields {
  readonly sessionId: string;
  readonly tool: string;
  readonly step: string;
  readonly allowed: readonly string[];
  readonly denied: readonly string[];
  readonly usedTokens: number;
  readonly tokenBudget: number;
}

/** Recreates the error of a rejected tool or an exhausted budget from the record of the failed turn (FIX-26). */
export function readOrchestrationFailure({ id, error }: Pick<Turn, 'id' | 'error'>): SessionsError | undefined {
  if (!error?.details) return undefined;
  const { sessionId, tool, step, allowed, denied, usedTokens, tokenBudget } = error.details as unknown as StoredFields;
  if (error.code === 'TOOL_NOT_ALLOWED') {
    return Object.assign(new ToolNotAllowedError(sessionId, tool, step, allowed, denied), { turnId: id });
  }
  if (error.code === 'TOKEN_BUDGET_EXCEEDED') {
    return Object.assign(new TokenBudgetExceededError(sessionId, usedTokens, tokenBudget), { turnId: id });
  }
  return undefined;
}

/** A tool has failed, and the failure is stored as the result of the call, see `storeFailure` (AIS-03). HTTP 500. */
export class ToolFailedError extends SessionsError {
  static override readonly codes = ['TOOL_FAILED'];
  readonly code = 'TOOL_FAILED';

  /** @param message the message of the tool's error */
  constructor(
    readonly tool: string,
    readonly callId: string,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/**
 * The id of a tool call was already used with another tool or another input (FIX-11). The use is not recorded, and its
 * work does not run. Ids are unique in their turn; outside of turns, in their session.
 * @param callId the model's id of the call
 * @param tool the tool that the id belongs to
 */
export function toolCallConflict(callId: string, tool: string): HandlerError {
  return new HandlerError('TOOL_CALL_CONFLICT', orchestrationMessages.callIdReused(callId, tool), {
    details: { callId, tool },
  });
}
