import { Allow } from 'class-validator';
import { Must, MustBeInteger, MustBeName, Optional } from '../common/check-input.js';
import { ID_RULE, isId, isName, NAME_RULE } from '../common/ids.js';
import { MustBeKeys } from '../common/unset-keys.js';

const MAX_KEPT = 1000;

/** What `SessionStore.create` takes (SES-02). */
export class CreateSessionInput {
  /** Chosen by the caller; left out, the store mints one with 128 random bits. */
  @Allow()
  id?: string;

  /** Who it belongs to: guards let nobody else in. */
  @MustBeName()
  userId!: string;

  /** The workspace or tenant in which it belongs to them. Default: none. */
  @Optional()
  @MustBeName()
  workspaceId?: string;

  /** The first surface to attach. Default: none. */
  @Optional()
  @MustBeName()
  initialSurfaceId?: string;

  /** JSON; copied. Default `{}`. */
  @Allow()
  metadata?: Record<string, unknown>;
}

/** How `SessionStore.updateMetadata` patches (FIX-47). */
export class MetadataOptions {
  /** Keys to remove, at most 1000; the patch must not have them. Keys that do not exist are ignored. Default: none. */
  @Optional()
  @MustBeKeys()
  unset?: readonly string[];
}

/** Which of a user's sessions `SessionStore.revokeAll` ends (NST-18). */
export class RevokeOptions {
  /** Ids of sessions that stay, such as the one that asks. At most 1000. Default: none. */
  @Optional()
  @Must(isIdOrIds, `must be a session id, or an array of at most ${MAX_KEPT}: ${ID_RULE}`)
  except?: string | readonly string[];

  /** Only those of this workspace; `null`: of no workspace. Left out: those of every workspace. */
  @Optional()
  @Must((value) => value === null || isName(value), NAME_RULE)
  workspaceId?: string | null;
}

/** How much one call of a sweep does (SES-09). */
export class SweepLimit {
  /** Stops after this many, for runs that must be short. Default: goes on until nothing stale is left. */
  @Optional()
  @MustBeInteger(0, Number.MAX_SAFE_INTEGER)
  maxSessions?: number;
}

function isIdOrIds(value: unknown): boolean {
  return isId(value) || (Array.isArray(value) && value.length <= MAX_KEPT && value.every(isId));
}
