import { type Turn } from '../../ledger/turn.js';
import { type TurnService } from '../../turn/turn.service.js';

/** Page size. A turn has its input and its reply, and the searched one is usually among the latest. */
const PAGE = 20;

/** Yields the latest turns of a session, the last one first, at most `limit`. */
export async function* latestTurns(
  turns: Pick<TurnService, 'list'>,
  sessionId: string,
  limit: number,
): AsyncGenerator<Turn, void> {
  let place: { after?: number } = {};
  for (let read = 0; read < limit; read += PAGE) {
    const page = await turns.list({ sessionId, order: 'desc', limit: PAGE, ...place });
    yield* page;
    if (page.length < PAGE) return;
    place = { after: page[PAGE - 1].position };
  }
}
