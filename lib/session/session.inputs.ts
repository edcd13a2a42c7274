import { Allow } from 'class-validator';
import { Must, MustBeInteger, MustBeName, Optional } from '../common/check-input.js';
import { type JsonCheck } from '../common/json-check.js';
import { ID_RULE, isId, isName, NAME_RULE } from '../common/ids.js';
import { isFields } from '../common/json.js';
import { MustBeKeys } from '../common/unset-keys.js';
import { type Session } from '../ledger/session.js';

const MAX_KEPT = 1000;

/** The input of `SessionStore.create` (SES-02). */
export class CreateSessionInput {
  /** A custom id. Default: a generated id with 128 random bits. */
  @Allow()
  id?: string;

  /** The user that owns the session. Guards reject all others. */
  @MustBeName()
  userId!: string;

  /** The workspace or tenant of the session. Default: none. */
  @Optional()
  @MustBeName()
  workspaceId?: string;

  /** The first surface to attach. Default: none. */
  @Optional()
  @MustBeName()
  initialSurfaceId?: string;

  /** Metadata of the session: JSON, which is copied. Default `{}`. */
  @Allow()
  metadata?: Record<string, unknown>;
}

/** The input of a new session, whose metadata the compiler checks (DAY-05). */
export type NewSessionInput<Metadata> = CreateSessionInput & { readonly metadata?: Metadata & JsonCheck<Metadata> };

/** Requires a session, or the fields that identify it. */
export const MustBeSession = (): PropertyDecorator => Must(isOwned, 'must be a session, or its createdAt and userId.');

/** The options of a change of one session. */
export class SessionChangeOptions {
  /**
   * The session that the caller has read. If the id was deleted and created again since, the change is rejected (FIX-90).
   * Default: the session of the current turn, or of the current request to a handler with `@UseSession()`, if it has this
   * id; otherwise any session with the id.
   */
  @Optional()
  @MustBeSession()
  session?: Pick<Session, 'createdAt' | 'userId'>;
}

/** The options of `SessionStore.updateMetadata` (FIX-47). */
export class MetadataOptions extends SessionChangeOptions {
  /** Keys to remove, at most 1000; the patch must not set them. Missing keys are ignored. Default: none. */
  @Optional()
  @MustBeKeys()
  unset?: readonly string[];
}

/** Selects the sessions that `SessionStore.revokeAll` ends (NST-18). */
export class RevokeOptions {
  /** Ids of sessions to keep, such as the current one. At most 1000. Default: none. */
  @Optional()
  @Must(isIdOrIds, `must be a session id, or an array of at most ${MAX_KEPT}: ${ID_RULE}`)
  except?: string | readonly string[];

  /** Only sessions of this workspace; `null`: sessions without a workspace. Default: every workspace. */
  @Optional()
  @Must((value) => value === null || isName(value), NAME_RULE)
  workspaceId?: string | null;
}

/** The limit of one call of a sweep (SES-09). */
export class SweepLimit {
  /** The maximum number of sessions to process. Default: no limit. */
  @Optional()
  @MustBeInteger(0, Number.MAX_SAFE_INTEGER)
  maxSessions?: number;

  /** Aborting the signal ends the sweep after the current batch. Default: none. */
  @Optional()
  @Must((value) => value instanceof AbortSignal, 'must be an AbortSignal.')
  signal?: AbortSignal;
}

function isIdOrIds(value: unknown): boolean {
  return isId(value) || (Array.isArray(value) && value.length <= MAX_KEPT && value.every(isId));
}

function isOwned(value: unknown): boolean {
  if (!isFields(value)) return false;
  const { createdAt, userId } = value;
  return typeof createdAt === 'string' && !Number.isNaN(Date.parse(createdAt)) && typeof userId === 'string';
}
