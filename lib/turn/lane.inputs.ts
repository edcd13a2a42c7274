import { Must, MustBeInteger, Optional } from '../common/check-input.js';
import { isId } from '../common/ids.js';

/** One lane, or all lanes. */
export type LaneScope = { readonly sessionId: string } | { readonly all: true };

/** Options of `lanes.drain`. */
export class DrainOptions {
  /** How long to wait, in milliseconds. Default 0: it only checks. */
  @Optional()
  @MustBeInteger(0, 2_147_483_647)
  timeoutMs?: number;
}

/** Selects the lanes to list. */
export class LaneListQuery {
  /** Returns lanes of sessions whose ids come after this one. Default: from the first. */
  @Optional()
  @Must(isId, 'must be the id of a session.')
  after?: string;

  /** The maximum number of lanes. Default 50. */
  @Optional()
  @MustBeInteger(1, 1000)
  limit?: number;
}
