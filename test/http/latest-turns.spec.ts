import { memoryAdapter, type Turn } from 'nestjs-agent-sessions';
import { type ChatStream } from '../../lib/http/chat/chat-stream.js';
import { ChatTurns } from '../../lib/http/chat/chat-turns.js';
import { ReplacedTurns } from '../../lib/http/chat/replaced-turns.js';
import { type TurnService } from '../../lib/turn/turn.service.js';

const HOUR_MS = 3_600_000;

type List = TurnService['list'];

const { conversations } = memoryAdapter();

/** A lane of turns, which counts those that are read. */
function lane(turns: readonly Partial<Turn>[]) {
  const read: Turn[] = [];
  const list: List = ({ after = Infinity, limit = 50 }) => {
    const page = all.filter(({ position }) => position < after).slice(0, limit);
    read.push(...page);
    return Promise.resolve(page);
  };
  const all = turns
    .map((turn, index) => {
      const input = { text: 'Hi', metadata: { ui: { id: `m${index + 1}` } } };
      return { id: `t${index + 1}`, position: index + 1, orchestrator: 'desk', request: { input }, ...turn } as Turn;
    })
    .toReversed();
  return { read, turns: { list } as unknown as TurnService };
}

function settled(agoMs: number): Partial<Turn> {
  const at = new Date(Date.now() - agoMs).toISOString();
  return { startedAt: at, settledAt: at, status: 'awaiting-input' };
}

const cancelled: Partial<Turn> = { status: 'cancelled', settledAt: new Date(0).toISOString() };
const hidden: Partial<Turn> = { ...settled(0), orchestrator: 'back-office' };

describe('the turns that a chat reads', () => {
  const old = Array.from({ length: 5000 }, () => settled(HOUR_MS));

  it.each<[string, Partial<Turn>[], string | undefined]>([
    ['no recent turn', [], undefined],
    ['one recent turn', [settled(0)], 't5001'],
    ['two recent turns', [settled(0), settled(0)], undefined],
    ['a recent turn before cancelled ones that have not begun', [settled(0), cancelled, cancelled], 't5001'],
    ['a recent turn before one of another orchestrator', [settled(0), hidden], 't5001'],
    ['an open turn after a recent one', [settled(0), { startedAt: new Date().toISOString() }], undefined],
  ])('AIS-33 reads one page for %s of a long chat', async (_, latest, expected) => {
    const { turns, read } = lane([...old, ...latest]);
    const chat = new ChatTurns(turns, {} as ChatStream, ['desk'], Infinity, conversations);
    expect((await chat.only('one', 60_000))?.id).toBe(expected);
    expect(read).toHaveLength(20);
  });

  it('AIS-33 finds a recent turn before many cancelled ones', async () => {
    const { turns } = lane([settled(0), ...Array.from({ length: 100 }, () => cancelled)]);
    const chat = new ChatTurns(turns, {} as ChatStream, ['desk'], Infinity, conversations);
    expect((await chat.only('one', 60_000))?.id).toBe('t1');
  });

  it.each([
    ['m4990', 't4990', 20],
    ['m4950', 't4950', 60],
    ['m4001', 't4001', 1000],
    ['m4000', undefined, 1000],
    ['unknown', undefined, 1000],
  ])('AIS-12 finds the message %s of a long chat among its latest 1,000 turns', async (id, expected, count) => {
    const { turns, read } = lane(old);
    expect((await new ReplacedTurns(turns, conversations, () => true).withMessage('one', id))?.id).toBe(expected);
    expect(read).toHaveLength(count);
  });
});
