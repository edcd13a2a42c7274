import { create } from './session-fixtures.js';
import { DESK, TestLane } from './test-lane.js';
import { type ConformanceContext } from './target.js';

/** Tests that pages repeat no row, and skip no row that remains, while rows are added and removed between them. */
export function describePaging(context: ConformanceContext): void {
  describe('paging while others write', () => {
    let lane: TestLane;

    beforeEach(async () => {
      lane = await TestLane.open(context);
    });

    it('TRN-01 turns, while some are accepted and others settle', async () => {
      const { turns } = context.adapter;
      const all = ['a', 'b', 'c', 'd', 'e'];
      for (const text of all) await lane.queue(text);

      const seen = await everyPage(
        (after: number) => turns.list({ sessionId: lane.sessionId, after, limit: 2 }),
        ({ position }) => position,
        0,
        async (page) => {
          await lane.settle((await lane.take()).hold);
          if (page < 3) all.push(await lane.queue(`new ${page}`).then(({ request }) => request.input.text));
        },
      );

      expect(seen.map(({ request }) => request.input.text)).toEqual(all);
    });

    it('TRN-01 queued turns, while those before and after the page are claimed and cancelled', async () => {
      const { turns } = context.adapter;
      const texts = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
      const ids: string[] = [];
      for (const text of texts) ids.push((await lane.queue(text)).id);

      const seen = await everyPage(
        (after: number) => turns.list({ sessionId: lane.sessionId, status: 'queued', after, limit: 2 }),
        ({ position }) => position,
        0,
        async (page) => {
          if (page > 1) return;
          await lane.settle((await lane.take()).hold);
          // The last row of this page, and a row of a later page.
          await turns.cancel(ids[1], 'cancel');
          await turns.cancel(ids[4], 'cancel');
        },
      );

      expect(seen.map(({ request }) => request.input.text)).toEqual(['a', 'b', 'c', 'd', 'f', 'g', 'h']);
    });

    it('TRN-11 lanes, while some receive their first turn and others lose their last', async () => {
      const { turns } = context.adapter;
      const prefix = context.id();
      const idOf = (name: string) => `${prefix}.${name}`;
      const open = async (name: string) => {
        await create(context, { id: idOf(name) });
        await lane.queue('first', { sessionId: idOf(name) });
      };
      for (const name of ['b', 'd', 'f', 'h', 'j', 'l']) await open(name);
      const ours = async (after: string) => {
        const page = await turns.lanes({ after: after || prefix, limit: 2 });
        return page.lanes.filter(({ sessionId }) => sessionId.startsWith(prefix));
      };

      const seen = await everyPage(
        ours,
        ({ sessionId }) => sessionId,
        '',
        async (page) => {
          if (page > 1) return;
          // The row after which the next page starts, the one before it and a later one. New rows on both sides.
          for (const name of ['d', 'b', 'h']) await turns.clear(idOf(name));
          for (const name of ['a', 'e', 'm']) await open(name);
        },
      );

      expect(seen.map(({ sessionId }) => sessionId)).toEqual(['b', 'd', 'e', 'f', 'j', 'l', 'm'].map(idOf));
    });

    it('STA-03 messages, while some are added', async () => {
      const { conversations } = context.adapter;
      const all = ['a', 'b', 'c', 'd', 'e'];
      const add = (content: string) =>
        conversations.append(lane.sessionId, [{ id: context.id(), role: 'user', content }]);
      for (const content of all) await add(content);

      const seen = await everyPage(
        (after: number) => conversations.page(lane.sessionId, { after, limit: 2 }),
        ({ position }) => position,
        0,
        async (page) => {
          if (page > 2) return;
          all.push(`new ${page}`);
          await add(`new ${page}`);
        },
      );

      expect(seen.map(({ content }) => content)).toEqual(all);
    });

    it('BOT-20 BOT-21 checkpoints, while some are added and the oldest are pruned', async () => {
      const { checkpoints } = context.adapter;
      const append = (index: number) => checkpoints.append(lane.checkpoint(index), 9);
      for (let index = 0; index < 9; index += 1) await append(index);

      const seen = await everyPage(
        (before: number) => checkpoints.history(DESK, lane.sessionId, { before, limit: 2 }),
        ({ turnIndex }) => turnIndex,
        Number.MAX_SAFE_INTEGER,
        // The newest row is on no later page, and the oldest is removed before its page is read.
        async (page) => void (await append(8 + page)),
      );

      expect(seen.map(({ turnIndex }) => turnIndex)).toEqual([8, 7, 6, 5, 4, 3]);
    });

    it('BOT-20 sessions with checkpoints, while some are added and others are deleted', async () => {
      const { checkpoints } = context.adapter;
      const orchestrator = context.id();
      const save = (sessionId: string) => checkpoints.append({ ...lane.checkpoint(0), orchestrator, sessionId }, 'all');
      for (const sessionId of ['b', 'd', 'f', 'h', 'j', 'l']) await save(sessionId);

      const seen = await everyPage(
        (after: string) => checkpoints.list(orchestrator, { after, limit: 2 }),
        (sessionId) => sessionId,
        '',
        async (page) => {
          if (page > 1) return;
          // The row after which the next page starts, the one before it and a later one. New rows on both sides.
          for (const sessionId of ['d', 'b', 'h']) await checkpoints.delete(orchestrator, sessionId);
          for (const sessionId of ['a', 'e', 'm']) await save(sessionId);
        },
      );

      expect(seen).toEqual(['b', 'd', 'e', 'f', 'j', 'l', 'm']);
    });
  });
}

/** Reads page after page, each after the last row of the previous one. @param between runs after page 1, 2, … */
async function everyPage<Row, Place>(
  read: (from: Place) => Promise<readonly Row[]>,
  placeOf: (row: Row) => Place,
  start: Place,
  between: (page: number) => Promise<void>,
): Promise<Row[]> {
  const rows: Row[] = [];
  let from = start;
  for (let page = 1; page < 100; page += 1) {
    const found = await read(from);
    if (found.length === 0) return rows;
    rows.push(...found);
    from = placeOf(found[found.length - 1]);
    await between(page);
  }
  throw new Error('The pages do not end.');
}
