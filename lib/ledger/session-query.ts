import { Allow } from 'class-validator';
import { Must, MustBeInteger, MustBeName, MustBeTime, Optional } from '../common/check-input.js';
import { isName, NAME_RULE } from '../common/ids.js';
import { SESSION_STATES, type SessionState } from './session.js';

/** Requires a state, or a list of states. */
export const MustBeStates = (): PropertyDecorator =>
  Must(isStateFilter, `must be one or more of ${SESSION_STATES.join(', ')}.`);

/** Selects sessions; all conditions must match (SES-04). */
export class SessionQuery {
  /** The user of the sessions. Default: every user. */
  @Optional()
  @MustBeName()
  userId?: string;

  /** The workspace of the sessions; `null`: sessions without a workspace. Default: every workspace. */
  @Optional()
  @Must((value) => value === null || isName(value), NAME_RULE)
  workspaceId?: string | null;

  /** The state or states of the sessions. Default: every state. */
  @Optional()
  @MustBeStates()
  state?: SessionState | SessionState[];

  /** A surface that is attached to the sessions. Default: any. */
  @Optional()
  @MustBeName()
  surfaceId?: string;

  /** Returns sessions with a strictly later `lastActivityAt`. ISO-8601. Default: any. */
  @Optional()
  @MustBeTime()
  activeAfter?: string;

  /** Returns sessions with a strictly earlier `lastActivityAt`. ISO-8601. Default: any. */
  @Optional()
  @MustBeTime()
  activeBefore?: string;

  /** Maximum number of sessions, 0 to 1000. Default 50. */
  @Optional()
  @MustBeInteger(0, 1000)
  limit?: number;

  /** The `nextCursor` of the previous page. Default: starts with the latest session. */
  @Allow()
  cursor?: string;
}

function isStateFilter(value: unknown): boolean {
  const states: unknown[] = Array.isArray(value) ? value : [value];
  return states.length > 0 && states.every((state) => SESSION_STATES.includes(state as SessionState));
}
