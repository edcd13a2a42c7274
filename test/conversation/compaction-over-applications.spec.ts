import {
  defineOrchestrator,
  type ConversationMessage,
  type OrchestratorEvent,
  OrchestratorEvents,
  reply,
} from 'nestjs-agent-sessions';
import { ConversationCompactor } from '../../lib/conversation/conversation-compactor.service.js';
import { eventually } from '../support/eventually.js';
import { LASTING_STORES, startApplication } from '../support/running-application.js';
import { headOf, listing } from './compactors.js';

const SESSIONS = 6;
const TURNS = 14;

/** A SQLite file and memory are used by one process at a time. */
const SHARED = LASTING_STORES.filter(({ name }) => name !== 'memory' && name !== 'sqlite');

/** Every store with one application, and shared stores with three. */
describe.each([
  ...LASTING_STORES.map((store) => ({ ...store, applications: 1 })),
  ...SHARED.map((store) => ({ ...store, applications: 3 })),
])('automatic compaction over $name, by $applications applications', ({ create, applications }) => {
  it('BOT-41 summarizes each message once, and shows each turn the whole conversation', async () => {
    const connect = create();
    const atWork = new Map<string, number>();
    const wrong: string[] = [];
    const summarize = async (
      messages: readonly ConversationMessage[],
      { sessionId }: { sessionId: string },
    ): Promise<string> => {
      const others = atWork.get(sessionId) ?? 0;
      if (others > 0) wrong.push(`${sessionId} is summarized twice at once`);
      atWork.set(sessionId, others + 1);
      await new Promise(setImmediate);
      atWork.set(sessionId, others);
      return listing(messages);
    };
    const desk = defineOrchestrator({
      name: 'desk',
      compaction: { afterTurns: 3, keep: 2, summarize },
      intents: {
        answer: ({ history, input }) => {
          // Summary and messages together must be the whole conversation.
          const said = history.map(({ content }) => content as string).join(' ');
          const before = Array.from({ length: Number(input.text) - 1 }, (_, index) => `${index + 1} re ${index + 1}`);
          if (said.replace(/[()]/g, '') !== before.join(' ')) wrong.push(`turn ${input.text} saw ${said}`);
          return reply(`re ${input.text}`);
        },
      },
    });
    const events: OrchestratorEvent[] = [];
    const apps = await Promise.all(
      Array.from({ length: applications }, () => startApplication({ adapter: connect(), orchestrators: [desk] })),
    );
    for (const { app } of apps)
      app.get(OrchestratorEvents, { strict: false }).stream.subscribe((event) => events.push(event));
    const compacted = (): Promise<unknown> =>
      Promise.all(apps.map(({ app }) => app.get(ConversationCompactor, { strict: false }).idle()));
    const sessionIds = await Promise.all(Array.from({ length: SESSIONS }, () => apps[0].session()));
    await Promise.all(
      sessionIds.map(async (sessionId, n) => {
        for (let turn = 1; turn <= TURNS; turn += 1) {
          const application = apps[(turn + n) % applications];
          await application.handle(desk).execute(`${turn}`, { sessionId });
          // Turns may finish before their compactions.
          if (turn === TURNS / 2) await compacted();
        }
      }),
    );
    await eventually(() => events.filter(({ type }) => type === 'turn-settled').length === SESSIONS * TURNS);
    await compacted();

    expect(wrong).toEqual([]);
    expect(events.filter(({ type }) => type === 'compaction-failed')).toEqual([]);
    for (const sessionId of sessionIds) {
      const { number, summary } = await headOf(apps[0].adapter, sessionId);
      const applied = events.flatMap((event) =>
        event.type === 'compaction-applied' && event.sessionId === sessionId ? [event] : [],
      );
      applied.sort((one, other) => one.number - other.number);
      expect(applied.map((event) => event.number)).toEqual(Array.from({ length: number }, (_, index) => index + 1));
      expect(number).toBeGreaterThan(1);
      // The compactions cover the log without gaps or overlaps.
      const through = applied.reduce((sum, { messages }) => sum + messages, 0);
      expect(applied.at(-1)?.replaces).toEqual({ from: 1, through });
      expect(summary?.replaces).toEqual({ from: 1, through });
    }
  }, 60_000);
});
