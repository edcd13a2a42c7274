import { Allow } from 'class-validator';
import { Must, MustBeInteger, MustBeName, MustBeTime, Optional } from '../common/check-input.js';
import { isName, NAME_RULE } from '../common/ids.js';
import { SESSION_STATES, type SessionState } from './session.js';

/** A state, or a list of them. */
export const MustBeStates = (): PropertyDecorator =>
  Must(isStateFilter, `must be one or more of ${SESSION_STATES.join(', ')}.`);

/** Which sessions to find; conditions are joined by AND (SES-04). */
export class SessionQuery {
  /** Sessions of this user. Default: of every user. */
  @Optional()
  @MustBeName()
  userId?: string;

  /** `null`: sessions that belong to no workspace. Left out: those of every workspace. */
  @Optional()
  @Must((value) => value === null || isName(value), NAME_RULE)
  workspaceId?: string | null;

  /** Sessions in one of these states. Default: in any. */
  @Optional()
  @MustBeStates()
  state?: SessionState | SessionState[];

  /** Sessions to which this surface is attached. Default: whatever is attached. */
  @Optional()
  @MustBeName()
  surfaceId?: string;

  /** Strictly later `lastActivityAt`. ISO-8601. Default: any. */
  @Optional()
  @MustBeTime()
  activeAfter?: string;

  /** Strictly earlier `lastActivityAt`. ISO-8601. Default: any. */
  @Optional()
  @MustBeTime()
  activeBefore?: string;

  /** At most this many, 0 to 1000; default 50. */
  @Optional()
  @MustBeInteger(0, 1000)
  limit?: number;

  /** Where to go on: the `nextCursor` of the page before. Default: from the latest. */
  @Allow()
  cursor?: string;
}

function isStateFilter(value: unknown): boolean {
  const states: unknown[] = Array.isArray(value) ? value : [value];
  return states.length > 0 && states.every((state) => SESSION_STATES.includes(state as SessionState));
}
