import { type Session } from '../../ledger/session.js';

/** A session as its owner sees it, with all metadata: do not store anything there that the owner must not see. */
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
