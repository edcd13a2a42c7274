import { SessionsError } from '../common/sessions.error.js';
import { type Turn } from '../ledger/turn.js';

/** The plan does not allow the tool now (ORC-28). HTTP 403. It was neither run nor recorded. */
export class ToolNotAllowedError extends SessionsError {
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
    /** Names or patterns that are taken out of `allowed`. */
    readonly denied: readonly string[] = [],
  ) {
    const but = denied.length > 0 ? `, but not ${denied.join(', ')}` : '';
    super(`The tool ${tool} is not allowed in step ${step}. Allowed now: ${allowed.join(', ') || 'none'}${but}.`);
  }
}

/** The plan has no such step (ORC-06). HTTP 400. Nothing was changed. */
export class UnknownStepError extends SessionsError {
  readonly code = 'UNKNOWN_STEP';
  readonly permanent = true;

  constructor(
    readonly step: string,
    readonly known: readonly string[],
  ) {
    super(`There is no step ${JSON.stringify(step)}. The plan has ${known.join(', ') || 'none'}.`);
  }
}

/**
 * A newer version of the package wrote an orchestration state, and this process cannot tell what it means (FIX-29). HTTP 503. Nothing is
 * lost: a process with that version reads it. Update this process.
 */
export class NewerStateError extends SessionsError {
  readonly code = 'NEWER_STATE';

  constructor(
    /** The type of the stored entry. */
    readonly entryType: string,
    /** The rules that the entry was written by. */
    readonly rules: number,
    /** The latest rules that this process knows. */
    readonly knownRules: number,
  ) {
    super(
      `A newer version of nestjs-agent-sessions wrote the orchestration state: entry ${JSON.stringify(entryType)} has rules ${rules}, ` +
        `and this process knows them up to ${knownRules}. Update this process.`,
    );
  }
}

/** The session has used up its tokens (ORC-11). HTTP 429. */
export class TokenBudgetExceededError extends SessionsError {
  readonly code = 'TOKEN_BUDGET_EXCEEDED';
  readonly permanent = true;
  /** The turn that failed because of it. Absent outside of turns and inside the handler. */
  readonly turnId?: string;

  constructor(
    readonly sessionId: string,
    readonly usedTokens: number,
    readonly tokenBudget: number,
  ) {
    super(`The session has used ${usedTokens} tokens; its budget is ${tokenBudget}.`);
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

/** Restores a refused tool or an exhausted budget from the record of the turn that failed because of it (FIX-26). */
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

/**
 * A tool call's id was used before, with another tool or another input (FIX-11): the use is not recorded, and its work does not
 * run. Ids belong to their turn; outside of turns, to their session. HTTP 409.
 */
export class ToolCallConflictError extends SessionsError {
  readonly code = 'TOOL_CALL_CONFLICT';
  readonly permanent = true;

  /**
   * @param callId the model's id of the call
   * @param tool the tool that the id belongs to
   */
  constructor(
    readonly callId: string,
    readonly tool: string,
  ) {
    super(
      `Tool call ${JSON.stringify(callId)} was a call of ${JSON.stringify(tool)} with another tool name or input. Use one id per ` +
        'call: the id that the model gave to it.',
    );
  }
}
