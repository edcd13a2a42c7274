import { SessionsError } from '../common/sessions.error.js';
import { HandlerError } from '../ledger/handler.error.js';
import { type Turn } from '../ledger/turn.js';
import { testingMessages } from './testing.messages.js';

/** The turn that a test awaits resumes only when the test's clock moves or a signal arrives. */
export class TurnNeedsTimeError extends SessionsError {
  static override readonly codes = ['TURN_NEEDS_TIME'];
  readonly code = 'TURN_NEEDS_TIME';
  readonly sessionId: string;
  readonly turnId: string;

  /** @param head the turn that holds the lane: `turn`, or an earlier one */
  constructor(turn: Turn, head: Turn, now: number) {
    super(testingMessages.unsettled(turn.id, head, now));
    this.sessionId = turn.sessionId;
    this.turnId = turn.id;
  }
}

/**
 * A scripted orchestrator received a turn and has no answer left.
 * @param scripted the number of answers in the script
 */
export function scriptOver(orchestrator: string, scripted: number, input: string): HandlerError {
  return new HandlerError('SCRIPT_OVER', testingMessages.scriptOver(orchestrator, scripted, input), {
    details: { orchestrator },
  });
}
