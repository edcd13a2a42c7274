import { errorType } from '../common/error-trace.js';
import { type TokenCounts } from '../common/token-counts.js';
import { type AttemptOutcome } from './turn-attempt.js';
import { type AcceptedTurn, type AcceptTurn, type ClaimedTurn } from '../ledger/turn.store.js';
import { attemptNumber, type Turn } from '../ledger/turn.js';
import {
  AGENT,
  ATTEMPT_NUMBER,
  ATTEMPT_OUTCOME,
  CONVERSATION,
  DUPLICATE,
  ERROR_TYPE,
  INPUT_TOKENS,
  OPERATION,
  OUTPUT_TOKENS,
  TURN,
  TURN_STATUS,
} from '../telemetry/attributes.js';
import { type Attributes, type Telemetry } from '../telemetry/telemetry.js';

/** Accepts a turn and stores the span with it, so that the attempts continue the trace in any process. */
export function observeSubmit(
  telemetry: Telemetry,
  turn: AcceptTurn,
  accept: (turn: AcceptTurn) => Promise<AcceptedTurn>,
): Promise<AcceptedTurn> {
  if (!telemetry.isAnswered) return accept(turn);
  const agent = { [AGENT]: turn.orchestrator };
  const attributes = { ...agent, [CONVERSATION]: turn.sessionId, [TURN]: turn.id };
  return telemetry.span({ name: `submit ${turn.orchestrator}`, kind: 'producer', attributes }, async (span) => {
    const { traceparent } = span;
    const accepted = await accept(traceparent ? { ...turn, request: { ...turn.request, traceparent } } : turn);
    const { duplicate } = accepted;
    span.set({ [DUPLICATE]: duplicate, ...(duplicate ? { [TURN]: accepted.turn.id } : {}) });
    if (!duplicate) telemetry.count('agent_sessions.turn.accepted', 1, agent);
    return accepted;
  });
}

/**
 * Runs one attempt. Its span is a child of the span that submitted the turn, so a waiting caller has it in its trace.
 * The messaging conventions allow this if one message is processed at a time.
 */
export function observeAttempt(
  telemetry: Telemetry,
  { turn, steps }: ClaimedTurn,
  run: () => Promise<AttemptOutcome>,
): Promise<AttemptOutcome> {
  if (!telemetry.isAnswered) return run();
  const { id, sessionId, orchestrator, request } = turn;
  const agent = { [AGENT]: orchestrator };
  const options = {
    name: `invoke_agent ${orchestrator}`,
    kind: 'consumer',
    attributes: {
      ...agent,
      [OPERATION]: 'invoke_agent',
      [CONVERSATION]: sessionId,
      [TURN]: id,
      [ATTEMPT_NUMBER]: attemptNumber(turn),
    },
    parent: request.traceparent ?? null,
  } as const;
  return telemetry.span(options, async (span) => {
    const startedAt = performance.now();
    // Only for the first attempt. One that resumes after a signal or a retry has stored steps, failures or losses.
    if (attemptNumber(turn) === 1 && steps.length === 0)
      telemetry.record('agent_sessions.lane.wait.duration', secondsWaited(turn), agent);
    const outcome = await run();
    const { name, error } = endOf(outcome);
    const result = { [ATTEMPT_OUTCOME]: name };
    span.set({ ...result, ...usageOf(outcome) });
    if (error !== undefined) span.fail(error);
    const failed: Attributes = error === undefined ? {} : { [ERROR_TYPE]: error };
    const seconds = (performance.now() - startedAt) / 1000;
    telemetry.record('agent_sessions.turn.attempt.duration', seconds, { ...agent, ...result, ...failed });
    if (name === 'retry') telemetry.count('agent_sessions.turn.retries', 1, { ...agent, ...failed });
    if (outcome.type === 'settled') {
      telemetry.count('agent_sessions.turn.settled', 1, { ...agent, [TURN_STATUS]: name, ...failed });
    }
    return outcome;
  });
}

/** Returns how an attempt ended: its turn's status, or the reason for another attempt. */
function endOf(outcome: AttemptOutcome): { readonly name: string; readonly error?: string } {
  switch (outcome.type) {
    case 'settled': {
      const { status } = outcome.settled.turn;
      return { name: status, ...(status === 'failed' ? { error: errorType(outcome.failure?.error) } : {}) };
    }
    case 'failed':
      return { name: 'retry', error: errorType(outcome.failure.error) };
    case 'returned':
      return { name: outcome.why };
    case 'lost':
      return { name: 'lost', error: errorType(outcome.error) };
    case 'unknown':
      return { name: 'unknown' };
  }
}

/** Returns the tokens that handlers passed to `turn.usage.add`. */
function usageOf(outcome: AttemptOutcome): Attributes {
  const usage = outcome.type === 'settled' ? outcome.settled.turn.report?.usage : undefined;
  if (!usage) return {};
  const { promptTokens, completionTokens } = usage as unknown as TokenCounts;
  return { [INPUT_TOKENS]: promptTokens, [OUTPUT_TOKENS]: completionTokens };
}

function secondsWaited({ acceptedAt, startedAt }: Turn): number {
  return startedAt === undefined ? 0 : (Date.parse(startedAt) - Date.parse(acceptedAt)) / 1000;
}
