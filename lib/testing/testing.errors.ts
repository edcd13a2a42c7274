import { SessionsError } from '../common/sessions.error.js';
import { HandlerError } from '../ledger/handler.error.js';
import { type Turn } from '../ledger/turn.js';

/** The turn that a test awaits resumes only when the test's clock moves or a signal arrives. */
export class TurnNeedsTimeError extends SessionsError {
  static override readonly codes = ['TURN_NEEDS_TIME'];
  readonly code = 'TURN_NEEDS_TIME';
  readonly sessionId: string;
  readonly turnId: string;

  /** @param head the turn that holds the lane: `turn`, or an earlier one */
  constructor(turn: Turn, head: Turn, now: number) {
    super(
      `Turn ${turn.id} has not settled: ${turn.id === head.id ? 'it' : `turn ${head.id} before it`} ${why(head, now)}`,
    );
    this.sessionId = turn.sessionId;
    this.turnId = turn.id;
  }
}

/**
 * A scripted orchestrator received a turn and has no answer left.
 * @param scripted the number of answers in the script
 */
export function scriptOver(orchestrator: string, scripted: number, input: string): HandlerError {
  return new HandlerError(
    'SCRIPT_OVER',
    `The script of orchestrator ${orchestrator} has ${scripted === 1 ? '1 answer' : `${scripted} answers`}, ` +
      `and another turn came with ${JSON.stringify(input)}. Add an answer to scriptedOrchestrator().`,
    { details: { orchestrator } },
  );
}

function why(head: Turn, now: number): string {
  if (head.waitingFor) {
    const signal = JSON.stringify(head.waitingFor.signal);
    return `waits for the signal ${signal}. Send it: await app.get(TurnService).signal('${head.id}', ${signal}).`;
  }
  const ms = Date.parse(head.dueAt ?? '') - now;
  const failed = head.error ? `failed (${head.error.name}: ${head.error.message}) and ` : '';
  return `${failed}resumes in ${ms} ms on the test's clock. Move the clock: await app.clock.advance(${ms}).`;
}
