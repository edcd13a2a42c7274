import { EventStream } from '../common/event-stream.js';
import { type Session, type SessionChange, type SessionState } from '../ledger/session.js';

/** A change of a session, with its previous state and cause (SES-18). */
export type SessionEvent =
  | { readonly type: 'created'; readonly session: Session }
  /** The first activity. */
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
      /**
       * `moved`: another session of the same user attached the surface. `limit`: the session exceeded its maximum
       * number of surfaces.
       */
      readonly cause: 'requested' | 'moved' | 'limit';
    };

/** The types of events that {@link SessionEvents} emits. */
export type SessionEventType = SessionEvent['type'];
/** The event of a type, as listeners receive it. */
export type SessionEventOf<Type extends SessionEventType> = Extract<SessionEvent, { readonly type: Type }>;

/**
 * Emits changes of sessions by this process, after they are stored (SES-18). Injectable; without Nest, use
 * `SessionStore.events`. Changes by other processes are not emitted. Listeners cannot delay or fail the change.
 */
export class SessionEvents extends EventStream<SessionEvent> {}

/** Emits an event if the session became active. */
export function emitActivity(events: SessionEvents, { session, previousState }: SessionChange): void {
  if (previousState === 'created') events.emit({ type: 'activated', session, previousState });
  if (previousState === 'suspended') events.emit({ type: 'resumed', session, previousState });
}
