import { type Logger } from '@nestjs/common';
import { traceOf } from '../../common/error-trace.js';
import { loggedId } from '../../common/log-details.js';
import { InvalidInputError } from '../../common/sessions.error.js';
import { type Session } from '../../ledger/session.js';
import { type SessionStore } from '../../session/session-store.service.js';

/**
 * Returns the orchestrator for a turn of a client: the named one, or the only one. Clients cannot tell a hidden
 * orchestrator from an unknown one.
 * @param allowed the names of the orchestrators that clients may use
 * @throws InvalidInputError
 */
export function orchestratorOf(allowed: readonly string[], named: string | undefined): string {
  if (named === undefined) {
    if (allowed.length === 1) return allowed[0];
    throw new InvalidInputError('body.orchestrator', 'is missing. Add the name of one of the orchestrators.');
  }
  if (allowed.includes(named)) return named;
  throw new InvalidInputError('body.orchestrator', 'must be the name of an orchestrator of this controller.');
}

/** Records activity of a session whose turn was accepted, so errors are only logged. */
export async function touchAccepted(
  sessions: Pick<SessionStore, 'touch'>,
  session: Session,
  logger: Logger,
): Promise<void> {
  try {
    await sessions.touch(session.id, { session });
  } catch (error) {
    logger.warn(`Could not touch session ${loggedId(session.id)} after its turn was accepted.`, traceOf(error));
  }
}
