import { type Session } from '../../ledger/session.js';

/** What its owner sees of a session. The metadata is all of it: keep nothing there that its owner must not see. */
export type SessionView = Pick<
  Session,
  'id' | 'state' | 'createdAt' | 'lastActivityAt' | 'stateChangedAt' | 'attachedSurfaces' | 'metadata'
>;

export function toSessionView(session: Session): SessionView {
  const { id, state, createdAt, lastActivityAt, stateChangedAt, attachedSurfaces, metadata } = session;
  return {
    id,
    state,
    createdAt,
    lastActivityAt,
    ...(stateChangedAt === undefined ? {} : { stateChangedAt }),
    attachedSurfaces,
    metadata,
  };
}
