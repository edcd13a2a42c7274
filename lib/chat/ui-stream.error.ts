import { SessionsError } from '../common/sessions.error.js';

/**
 * Two handlers of a turn write an answer for the chat at the same time, for example two intents of a route. A client
 * cannot show them as one message. The turn fails. HTTP 500.
 */
export class ParallelAnswersError extends SessionsError {
  readonly code = 'PARALLEL_ANSWERS';
  readonly permanent = true;

  constructor() {
    super(
      'Another intent of this turn already streams an answer, and a chat shows one answer of a turn. Call streamReply ' +
        'in one intent of a route only. The others can call generateText with a durableModel and return a reply.',
    );
  }
}
