import { ValidateIf } from 'class-validator';
import { Must, MustBeBoolean, MustBeInteger, MustBeName, Optional } from '../../common/check-input.js';
import { isId } from '../../common/ids.js';
import { isFields } from '../../common/json.js';
import { MustBeKeys } from '../../common/unset-keys.js';
import { MustBeStates } from '../../ledger/session-query.js';
import { type SessionState } from '../../ledger/session.js';

const MAX_PAGE = 200;

/** What a client says of the session that it creates. */
export class CreateSessionBody {
  /** Without a slash: those part the ids of sessions that orchestrators make for themselves. */
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

/** Which keys of a session's metadata to change. */
export class UpdateSessionBody {
  /** Merged by top-level keys; `null` removes one. May be absent beside `unset`. */
  @ValidateIf(({ unset }: UpdateSessionBody, value: unknown) => value !== undefined || unset === undefined)
  @Must(isFields, 'must be an object.')
  metadata?: Record<string, unknown>;

  /** Keys to remove (FIX-47). Default: none. */
  @Optional()
  @MustBeKeys()
  unset?: string[];
}

/** Which of the principal's sessions to list. */
export class ListSessionsQuery {
  @Optional()
  @MustBeStates()
  state?: SessionState | SessionState[];

  @Optional()
  @MustBeName()
  surfaceId?: string;

  /** Sessions of a page, at most. Default 50. */
  @Optional()
  @MustBeInteger(1, MAX_PAGE)
  limit?: number;
}

/** Which of the principal's sessions to end. */
export class RevokeSessionsBody {
  /** All but the one that the request names. Default false. */
  @Optional()
  @MustBeBoolean()
  exceptCurrent?: boolean;
}
