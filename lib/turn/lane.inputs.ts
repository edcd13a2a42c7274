import { Must, MustBeInteger, Optional } from '../common/check-input.js';
import { isId } from '../common/ids.js';

/** One lane, or every lane. */
export type LaneScope = { readonly sessionId: string } | { readonly all: true };

/** How long a drain waits. */
export class DrainOptions {
  /** Milliseconds; default 0: it only looks. */
  @Optional()
  @MustBeInteger(0, 2_147_483_647)
  timeoutMs?: number;
}

/** Which lanes to list. */
export class LaneListQuery {
  /** Lanes of sessions whose ids come after this one. Default: from the first. */
  @Optional()
  @Must(isId, 'must be the id of a session.')
  after?: string;

  /** At most this many; default 50. */
  @Optional()
  @MustBeInteger(1, 1000)
  limit?: number;
}
