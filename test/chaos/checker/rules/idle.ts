import { type Run } from '../run.js';

/** After the run, no work remains (TRN-21). */
export function* idle({ contents }: Run): Generator<string> {
  for (const leftover of contents.leftovers) yield `left over: ${leftover}`;
  for (const { sessionId, lane } of contents.sessions) {
    const place = `session ${sessionId}: the lane`;
    if (lane.head) yield `${place} has a head, turn ${lane.head.id} (${lane.head.status})`;
    if (lane.queued > 0) yield `${place} has ${lane.queued} queued turns`;
    if (lane.mode !== 'open') yield `${place} is ${lane.mode}`;
  }
}
