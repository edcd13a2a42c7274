import { SessionsError } from '../common/sessions.error.js';

/** The plan does not allow the tool now (ORC-28). HTTP 403. It was neither run nor recorded. */
export class ToolNotAllowedError extends SessionsError {
  readonly code = 'TOOL_NOT_ALLOWED';
  readonly permanent = true;

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

/** The session has used up its tokens (ORC-11). HTTP 429. */
export class TokenBudgetExceededError extends SessionsError {
  readonly code = 'TOKEN_BUDGET_EXCEEDED';
  readonly permanent = true;

  constructor(
    readonly sessionId: string,
    readonly usedTokens: number,
    readonly tokenBudget: number,
  ) {
    super(`The session has used ${usedTokens} tokens; its budget is ${tokenBudget}.`);
  }
}
