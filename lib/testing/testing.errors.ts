import { SessionsError } from '../common/sessions.error.js';
import { type Turn } from '../ledger/turn.js';

/** The turn that a test waits for goes on only when the test's clock moves, or when it is signalled. */
export class TurnNeedsTimeError extends SessionsError {
  readonly code = 'TURN_NEEDS_TIME';
  readonly sessionId: string;
  readonly turnId: string;

  /** @param head the turn that holds the lane: it, or one before it */
  constructor(turn: Turn, head: Turn, now: number) {
    super(
      `Turn ${turn.id} has not settled: ${turn.id === head.id ? 'it' : `turn ${head.id} before it`} ${why(head, now)}`,
    );
    this.sessionId = turn.sessionId;
    this.turnId = turn.id;
  }
}

/** A turn came to a scripted orchestrator that has no answer left. It fails at once. */
export class ScriptOverError extends SessionsError {
  readonly code = 'SCRIPT_OVER';
  readonly permanent = true;

  constructor(
    readonly orchestrator: string,
    /** How many answers the script has. */
    readonly scripted: number,
    input: string,
  ) {
    super(
      `The script of orchestrator ${orchestrator} is over: it has ${scripted === 1 ? '1 answer' : `${scripted} answers`}, ` +
        `and another turn came with ${JSON.stringify(input)}. Add an answer to scriptedOrchestrator().`,
    );
  }
}

function why(head: Turn, now: number): string {
  if (head.waitingFor) return `waits for the signal ${JSON.stringify(head.waitingFor.signal)}.`;
  const ms = Date.parse(head.dueAt ?? '') - now;
  const failed = head.error ? `failed (${head.error.name}: ${head.error.message}) and ` : '';
  return `${failed}goes on in ${ms} ms by the test's clock. Move it: await app.clock.advance(${ms}).`;
}
