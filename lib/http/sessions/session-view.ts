import { type Session, type SessionState } from '../../ledger/session.js';

/** A session as its owner sees it, with all metadata: do not store anything there that the owner must not see. */
export type SessionView = Pick<
  Session,
  'id' | 'state' | 'createdAt' | 'lastActivityAt' | 'stateChangedAt' | 'attachedSurfaces' | 'metadata'
>;

/** @param state the current state, which the sweep may not have stored yet */
export function toSessionView(session: Session, state: SessionState): SessionView {
  const { id, createdAt, lastActivityAt, stateChangedAt, attachedSurfaces, metadata } = session;
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
