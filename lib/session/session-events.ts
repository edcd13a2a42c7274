import { EventStream } from '../common/event-stream.js';
import { type Session, type SessionChange, type SessionState } from '../ledger/session.js';

/** What happened to a session, with the state before and why (SES-18). */
export type SessionEvent =
  | { readonly type: 'created'; readonly session: Session }
  /** First activity. */
  | { readonly type: 'activated'; readonly session: Session; readonly previousState: SessionState }
  /** Activity after the session was suspended, or idle for longer than its TTL. */
  | { readonly type: 'resumed'; readonly session: Session; readonly previousState: SessionState }
  | {
      readonly type: 'suspended';
      readonly session: Session;
      readonly previousState: SessionState;
      readonly cause: 'idle';
    }
  | {
      readonly type: 'expired';
      readonly session: Session;
      readonly previousState: SessionState;
      readonly cause: 'requested' | 'idle' | 'lifetime' | 'revoked';
    }
  | { readonly type: 'deleted'; readonly sessionId: string; readonly cause: 'requested' | 'retention' | 'erased' }
  | { readonly type: 'surface-attached'; readonly session: Session; readonly surfaceId: string }
  | {
      readonly type: 'surface-detached';
      readonly session: Session;
      readonly surfaceId: string;
      /** `moved`: another session of the same user took the surface; `limit`: the session attached one more than it may. */
      readonly cause: 'requested' | 'moved' | 'limit';
    };

/** What {@link SessionEvents} tells of. */
export type SessionEventType = SessionEvent['type'];
/** The event of a type, as its listeners get it. */
export type SessionEventOf<Type extends SessionEventType> = Extract<SessionEvent, { readonly type: Type }>;

/**
 * Tells what this process did to sessions, after it was stored (SES-18). Injectable, and `SessionStore.events` without
 * Nest. What other processes do is not heard here. No listener delays or fails what it is told of.
 */
export class SessionEvents extends EventStream<SessionEvent> {}

/** Says that a session became active, when it did. */
export function emitActivity(events: SessionEvents, { session, previousState }: SessionChange): void {
  if (previousState === 'created') events.emit({ type: 'activated', session, previousState });
  if (previousState === 'suspended') events.emit({ type: 'resumed', session, previousState });
}
