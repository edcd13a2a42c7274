import { type Session } from '../ledger/session.js';

/** Returns true if the session was created for an orchestrator that runs as a tool of another one. */
export function isChildSession({ metadata }: Session): boolean {
  return typeof metadata.parentSessionId === 'string';
}
