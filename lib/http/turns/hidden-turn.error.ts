import { SessionsError } from '../../common/sessions.error.js';
import { type IdempotencyConflictError, type SessionBusyError } from '../../ledger/turn.errors.js';

type Told = SessionBusyError | IdempotencyConflictError;

const MESSAGES: Readonly<Record<Told['code'], string>> = {
  SESSION_BUSY: 'The session is busy.',
  IDEMPOTENCY_CONFLICT: 'The idempotency key belongs to another message. Use a new key for a new message.',
};

/** An error as the client may have it: without the turn, which is none that clients are shown. */
export class HiddenTurnError extends SessionsError {
  readonly code: Told['code'];
  readonly sessionId: string;

  constructor({ code, sessionId }: Told) {
    super(MESSAGES[code]);
    this.code = code;
    this.sessionId = sessionId;
  }
}
