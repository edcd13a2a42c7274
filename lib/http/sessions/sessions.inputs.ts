import { ValidateIf } from 'class-validator';
import { Must, MustBeBoolean, MustBeInteger, MustBeName, Optional } from '../../common/check-input.js';
import { isId } from '../../common/ids.js';
import { isFields } from '../../common/json.js';
import { MustBeKeys } from '../../common/unset-keys.js';
import { MustBeStates } from '../../ledger/session-query.js';
import { type SessionState } from '../../ledger/session.js';

const MAX_PAGE = 200;

/** The body of a new session. */
export class CreateSessionBody {
  /**
   * A custom id without slashes, which separate the ids of sessions that orchestrators create. Default: a generated id.
   */
  @Optional()
  @Must((value) => isId(value) && !value.includes('/'), 'must be an id without a slash.')
  id?: string;

  @Optional()
  @MustBeName()
  surfaceId?: string;

  @Optional()
  @Must(isFields, 'must be an object.')
  metadata?: Record<string, unknown>;
}

/** The metadata keys to change. */
export class UpdateSessionBody {
  /** Merged at the top level; `null` removes a key. Optional if `unset` is set. */
  @ValidateIf(({ unset }: UpdateSessionBody, value: unknown) => value !== undefined || unset === undefined)
  @Must(isFields, 'must be an object.')
  metadata?: Record<string, unknown>;

  /** Keys to remove (FIX-47). Default: none. */
  @Optional()
  @MustBeKeys()
  unset?: string[];
}

/** Selects sessions of the principal. */
export class ListSessionsQuery {
  @Optional()
  @MustBeStates()
  state?: SessionState | SessionState[];

  @Optional()
  @MustBeName()
  surfaceId?: string;

  /** Maximum number of sessions per page. Default 50. */
  @Optional()
  @MustBeInteger(1, MAX_PAGE)
  limit?: number;
}

/** Selects the sessions of the principal to end. */
export class RevokeSessionsBody {
  /** Whether to keep the session that the request names. Default false. */
  @Optional()
  @MustBeBoolean()
  exceptCurrent?: boolean;
}
