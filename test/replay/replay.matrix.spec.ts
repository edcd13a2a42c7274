import { execFile } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { jest } from '@jest/globals';
import { type ConversationMessage, type Turn } from 'nestjs-agent-sessions';
import { POSTGRES, REDIS } from '../support/servers.js';
import { temporaryFolder } from '../support/stores.js';
import { LaneWatch } from './lane-watch.js';
import { toDraft } from './message-mapping.js';
import { readRecords, type RecordedConversation, turnsOf } from './record.js';
import { parseOptions } from './replay-options.js';
import { attemptsRepeated } from './report.js';
import { firstDifference, type ReplayedConversation } from './verify.js';

const FOLDER = temporaryFolder();
const AIRLINE = join(import.meta.dirname, '../../../shared/data/airline-agent.jsonl');

describe('replay', () => {
  it('TRN-15 replays conversations with kills, and stores the recorded messages', async () => {
    const file = recordFile(conversation('a-1'), conversation('a-2'), conversation('a-3'), conversation('a-4'));

    const { code, stdout, stderr } = await replay(file, '--kill-every', '3');

    expect(stderr).not.toContain('DIFFERENCE');
    expect(cells(stdout)).toMatchObject({ sessions: '4', turns: '12', messages: '32', result: 'all equal' });
    expect(Number(cells(stdout).kills)).toBeGreaterThanOrEqual(2);
    expect(cells(stdout).restarts).toBe(cells(stdout).kills);
    if (cells(stdout)['steps repeated'] !== '0') expect(cells(stdout)['attempts repeated']).not.toBe('0');
    expect(code).toBe(0);
  }, 60_000);

  it('TRN-02 replays conversations in memory', async () => {
    const { code, stdout } = await replay(recordFile(conversation('a-1')), '--adapter', 'memory');

    expect(cells(stdout)).toMatchObject({ sessions: '1', turns: '3', messages: '8', kills: '0', result: 'all equal' });
    expect(code).toBe(0);
  }, 60_000);

  for (const server of [REDIS, POSTGRES]) {
    const title = `TRN-15 TRN-21 replays with workers that BullMQ on ${server.name} notifies, and kills one after the other`;
    (server.url === '' ? it.skip : it)(
      title,
      async () => {
        const file = recordFile(...[1, 2, 3, 4, 5, 6].map((n) => conversation(`a-${n}`)));
        const queue = ['--adapter', server.name, '--queue', 'bullmq', '--workers', '2'];

        const { code, stdout, stderr } = await replay(file, '--kill-every', '5', ...queue);

        expect(stderr).not.toContain('DIFFERENCE');
        expect(cells(stdout)).toMatchObject({ sessions: '6', turns: '18', messages: '48', result: 'all equal' });
        expect(Number(cells(stdout).kills)).toBeGreaterThanOrEqual(1);
        expect(Number(cells(stdout)['longest stop s'])).toBeLessThan(15);
        expect(code).toBe(0);
      },
      60_000,
    );
  }

  // Kills restart the only worker. A lane whose turns were lost may not wait until the others have finished.
  it.each([29, 67, 150])(
    'FIX-83 lets no lane wait much longer than the others, with a kill every %i turns',
    async (killEvery) => {
      const file = recordFile(...Array.from({ length: 40 }, (_, lane) => smallTalk(`a-${lane}`, 10)));

      const { code, stdout } = await replay(file, '--concurrency', '8', '--kill-every', `${killEvery}`);

      const waits = cells(stdout);
      expect(Number(waits.kills)).toBeGreaterThanOrEqual(2);
      expect(Number(waits['longest wait s'])).toBeLessThanOrEqual(3 * Number(waits['median wait s']));
      expect(Number(waits['worst ratio'])).toBeLessThanOrEqual(5);
      expect(code).toBe(0);
    },
    180_000,
  );

  // One of two workers is killed. A lane waits for the lease of the dead worker, and then for all lanes that BullMQ notifies before it.
  (REDIS.url === '' ? it.skip : it)(
    'FIX-83 lets no lane wait much longer than the others if BullMQ notifies them, with kills',
    async () => {
      const file = recordFile(...Array.from({ length: 200 }, (_, lane) => smallTalk(`a-${lane}`, 20)));
      const queue = ['--adapter', 'redis', '--queue', 'bullmq', '--workers', '2', '--concurrency', '8'];

      const { code, stdout } = await replay(file, '--kill-every', '67', ...queue);

      const waits = cells(stdout);
      expect(Number(waits.kills)).toBeGreaterThanOrEqual(2);
      expect(Number(waits['longest wait s'])).toBeLessThanOrEqual(3 * Number(waits['median wait s']));
      expect(Number(waits['worst ratio'])).toBeLessThanOrEqual(5);
      expect(code).toBe(0);
    },
    180_000,
  );

  const airlineTitle = 'TRN-15 replays ten recorded conversations of an airline agent with kills';
  if (existsSync(AIRLINE)) {
    it(
      airlineTitle,
      async () => {
        const { code, stdout } = await replay(AIRLINE, '--sessions', '10', '--kill-every', '20');

        expect(cells(stdout)).toMatchObject({ sessions: '10', result: 'all equal' });
        expect(Number(cells(stdout).kills)).toBeGreaterThanOrEqual(2);
        expect(code).toBe(0);
      },
      60_000,
    );
  } else {
    it.skip(`${airlineTitle} (shared/data/airline-agent.jsonl is not there)`, () => undefined);
  }

  it('TRN-15 reports the first difference and fails when the stored messages differ', async () => {
    // Stores write -0 as 0, as JSON.stringify does.
    const annotated = '{"id":"a-2","messages":[{"role":"user","content":"Hello","state":[{"degrees":-0}]}]}';
    const file = recordFile(conversation('a-1'), annotated, conversation('a-3'));

    const { code, stdout, stderr } = await replay(file);

    expect(cells(stdout)).toMatchObject({ result: 'DIFFERENT' });
    expect(stderr).toContain('FIRST DIFFERENCE: a-2: messages[0].state[0].degrees: expected 0, stored 0');
    expect(code).toBe(1);
  }, 60_000);

  it('TRN-15 rejects invalid arguments and unusable files with exit code 2, and prints help', async () => {
    expect(await replay(recordFile(conversation('a')), '--fast')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("Unknown option '--fast'") as string,
    });
    expect(await replay('nowhere.jsonl')).toMatchObject({
      code: 2,
      stderr: 'nowhere.jsonl cannot be read (ENOENT).\n',
    });
    expect(await replay('--help')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('--kill-every N') as string,
    });
  });
});

describe('report of replay', () => {
  it('FIX-06 counts attempts that were lost with a killed worker as repeated', () => {
    const turns = [
      { failures: 0, lost: 0 },
      { failures: 1, lost: 0 },
      { failures: 2, lost: 3 },
    ];
    expect(attemptsRepeated(turns)).toBe(6);
  });
});

describe('arguments of replay', () => {
  it.each([
    ['no file', [], 'FILE is missing'],
    ['two files', ['a', 'b'], 'Only one FILE'],
    ['an unknown option', ['a', '--kill'], "Unknown option '--kill'"],
    ['an option without its value', ['a', '--sessions'], 'sessions'],
    ['no sessions', ['a', '--sessions', '0'], '--sessions must be an integer of at least 1. Received: 0.'],
    ['a half kill', ['a', '--kill-every', '1.5'], '--kill-every must be an integer of at least 1. Received: 1.5.'],
    ['an unknown adapter', ['a', '--adapter', 'oracle'], '--adapter must be one of sqlite'],
    ['an unknown queue', ['a', '--queue', 'kafka'], '--queue must be one of in-process'],
    ['BullMQ without a server', ['a', '--queue', 'bullmq'], '--queue bullmq needs a server'],
    ['workers without BullMQ', ['a', '--adapter', 'redis', '--workers', '2'], '--workers is for --queue bullmq'],
    ['no turn at a time', ['a', '--concurrency', '0'], '--concurrency must be an integer of at least 1. Received: 0.'],
    ['a memory that is killed', ['a', '--adapter', 'memory', '--kill-every', '5'], 'memory does not'],
  ])('TRN-15 rejects %s', (_, args, message) => {
    expect(() => parseOptions(args)).toThrow(message);
  });

  it('TRN-15 have defaults', () => {
    expect(parseOptions(['a.jsonl'])).toEqual({
      file: 'a.jsonl',
      adapter: 'sqlite',
      queue: 'in-process',
      workers: 1,
      sessions: Infinity,
    });
    expect(parseOptions(['a.jsonl', '--sessions', '3', '--kill-every', '40', '--concurrency', '8'])).toMatchObject({
      sessions: 3,
      killEvery: 40,
      concurrency: 8,
    });
  });
});

describe('the watch over lanes', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });

  afterEach(() => {
    jest.useRealTimers();
  });

  it('TRN-15 measures the longest time from a kill to the next settled turn of a lane with work', () => {
    const lanes = new LaneWatch();
    lanes.submitted('idle');
    lanes.settled('idle');
    lanes.submitted('busy');
    lanes.submitted('busy');
    lanes.killed();
    jest.advanceTimersByTime(30);
    lanes.killed();
    lanes.submitted('idle');
    lanes.settled('idle');
    expect(lanes.longestMs).toBe(0);
    lanes.settled('busy');
    expect(lanes.longestMs).toBe(30);
    jest.advanceTimersByTime(50);
    lanes.settled('busy');
    expect(lanes.longestMs).toBe(30);
  });

  it('FIX-83 compares the longest wait of each lane with the median', () => {
    const lanes = new LaneWatch();
    const names = ['a', 'b', 'c'];
    for (const lane of names) lanes.submitted(lane);
    lanes.submitted('c');
    jest.advanceTimersByTime(10);
    lanes.settled('a');
    lanes.settled('b');
    jest.advanceTimersByTime(90);
    lanes.killed();
    // The lanes without work did not wait. The third one still does.
    expect(lanes.waits()).toEqual({ longestMs: 100, medianMs: 10 });
    expect(lanes.worstRatio).toBe(10);
    lanes.settled('c');
    jest.advanceTimersByTime(1);
    lanes.settled('c');
    expect(lanes.waits()).toEqual({ longestMs: 100, medianMs: 10 });
  });
});

describe('a recorded file', () => {
  const hello = { role: 'user', content: 'Hello' };

  it.each([
    ['is not JSON', '{"id":', 'line 2 is not JSON'],
    ['is no object', '[]', 'line 2: a conversation must be an object'],
    ['has no id', { messages: [hello] }, 'line 2: id must be a string'],
    ['has no messages', { id: 'b' }, 'line 2: messages must be an array'],
    ['has an id again', conversation('a'), 'line 2: the id a was there before'],
    [
      'begins with an answer',
      recorded({ role: 'assistant', content: 'Hi' }),
      'messages must begin with a user message',
    ],
    ['has a late system message', recorded(hello, { role: 'system', content: 'Be kind.' }), 'messages[1] is a system'],
    ['has an unknown role', recorded({ role: 'robot', content: '' }), 'messages[0].role must be one of'],
    ['has an unknown key', recorded({ ...hello, mood: 'good' }), 'messages[0].mood is not a known key'],
    ['has no content', recorded({ role: 'user' }), 'messages[0].content must be a string'],
    ['has a blank user message', recorded({ role: 'user', content: ' ' }), 'messages[0].content must not be empty'],
    ['has a lost tool result', recorded(hello, { role: 'tool', content: '1' }), 'messages[1].tool_call_id must be'],
    ['has a broken tool call', recorded(hello, asking({ id: 'c', type: 'function' })), 'messages[1].tool_calls must'],
  ])('TRN-15 is rejected when a line %s', (_, line, message) => {
    const file = recordFile(conversation('a'), line);
    expect(() => readRecords(file)).toThrow(message);
  });

  it('TRN-15 is rejected when it is empty', () => {
    expect(() => readRecords(recordFile())).toThrow('has no conversations');
  });

  function recorded(...messages: object[]): object {
    return { id: 'b', messages };
  }

  function asking(call: object): object {
    return { role: 'assistant', content: null, tool_calls: [call] };
  }
});

describe('the check at the end of a replay', () => {
  it('TRN-15 accepts equal conversations', () => {
    expect(firstDifference(wellReplayed())).toBeNull();
  });

  it('TRN-15 allows a step to run again before a later one has run', () => {
    expect(firstDifference({ ...wellReplayed(), effects: new Map([...steps(), ['t1', [0, 0, 1, 1, 2]]]) })).toBeNull();
  });

  const tampered: readonly [string, (replayed: ReplayedConversation) => Partial<ReplayedConversation>, string][] = [
    [
      'a changed message',
      ({ stored }) => withMessages(stored.messages.with(5, { ...stored.messages[5], content: 'Changed' })),
      'messages[5].content: expected "Done ✅ — 日本語", stored "Changed"',
    ],
    [
      'changed arguments of a tool call',
      ({ record }) => ({ record: changedArguments(record) }),
      'messages[3].tool_calls[0].function.arguments: expected "{}", stored "{ \\"seat\\": \\"7A\\" }"',
    ],
    [
      'a lost message',
      ({ stored }) => withMessages(stored.messages.slice(0, -1)),
      'messages[7]: expected {"role":"assistant","content":"Bye","calls":[{"name":"hang_up","results":1}]}, stored nothing',
    ],
    [
      'a message that is there twice',
      ({ stored }) => withMessages([...stored.messages, { ...stored.messages[7], position: 9 }]),
      'messages[8]: expected nothing, stored {"role":"assistant","content":"Bye"',
    ],
    [
      'a gap in the positions of messages',
      ({ stored }) => withMessages(stored.messages.with(7, { ...stored.messages[7], position: 9 })),
      'messages[7].position: expected 8, stored 9',
    ],
    [
      'a message that another turn wrote',
      ({ stored }) => withMessages(stored.messages.with(7, { ...stored.messages[7], turnId: 't1' })),
      'messages[7].turnId: expected "t2", stored "t1"',
    ],
    ['turns in another order', () => ({ turnIds: ['t1', 't0', 't2'] }), 'turns[0].id: expected "t1", stored "t0"'],
    [
      'a turn that is there twice',
      ({ stored }) => withTurns([...stored.turns, { ...stored.turns[2], position: 4 }]),
      'turns[3]: expected nothing, stored {"id":"t2","position":4',
    ],
    ['a lost turn', ({ stored }) => withTurns(stored.turns.slice(0, 2)), 'turns[2]: expected {"id":"t2"'],
    [
      'a gap in the indices of turns',
      ({ stored }) => withTurns(stored.turns.with(2, { ...stored.turns[2], turnIndex: 3 })),
      'turns[2].turnIndex: expected 2, stored 3',
    ],
    [
      'a failed turn',
      ({ stored }) => withTurns(stored.turns.with(1, { ...stored.turns[1], status: 'failed' })),
      'turns[1].status: expected "awaiting-input", stored "failed"',
    ],
    [
      'a stored step that ran again',
      () => ({ effects: new Map([...steps(), ['t1', [0, 1, 0, 1, 2]]]) }),
      'turns[1].steps[2]: expected 2, stored 0',
    ],
    [
      'a step that never ran',
      () => ({ effects: new Map([...steps(), ['t1', [0, 1]]]) }),
      'turns[1].steps[2]: expected 2, stored nothing',
    ],
  ];

  it.each(tampered)('TRN-15 detects %s', (_, tamper, difference) => {
    const replayed = wellReplayed();
    expect(firstDifference({ ...replayed, ...tamper(replayed) })).toContain(`a: ${difference}`);
  });

  it('TRN-15 shows long strings from shortly before their first difference', () => {
    const replayed = wellReplayed();
    const [system, ...rest] = replayed.record.messages;
    const record = { ...replayed.record, messages: [{ ...system, content: `${system.content}!` }, ...rest] };
    expect(firstDifference({ ...replayed, record })).toBe(
      'a: messages[0].content: expected …" every time. Be kind!", stored …" every time. Be kind"',
    );
  });

  function withMessages(messages: readonly ConversationMessage[]): Partial<ReplayedConversation> {
    return { stored: { messages, turns: wellReplayed().stored.turns } };
  }

  function withTurns(turns: readonly Turn[]): Partial<ReplayedConversation> {
    return { stored: { turns, messages: wellReplayed().stored.messages } };
  }

  function changedArguments(record: RecordedConversation): RecordedConversation {
    const text = JSON.stringify(record).replace(JSON.stringify('{ "seat": "7A" }').slice(1, -1), '{}');
    return JSON.parse(text) as RecordedConversation;
  }
});

/** Three turns with eight messages: a system message, a tool call and its result, non-ASCII text, annotations. */
function conversation(id: string): RecordedConversation {
  return {
    id,
    userId: 'ann',
    messages: [
      { role: 'system', content: `${'Answer politely, every time. '.repeat(10)}Be kind` },
      { role: 'user', content: 'Grüß Gott 👩‍✈️' },
      { role: 'user', content: 'Book 7A\nplease', state: [{ intent: 'Book', slots: { seat: '7A' } }] },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'book', arguments: '{ "seat": "7A" }' } }],
      },
      { role: 'tool', tool_call_id: 'call_1', name: 'book', content: '' },
      { role: 'assistant', content: 'Done ✅ — 日本語' },
      { role: 'user', content: '###STOP###', state: [] },
      { role: 'assistant', content: 'Bye', calls: [{ name: 'hang_up', results: 1 }] },
    ],
  };
}

/** A conversation whose turns have one answer each. */
function smallTalk(id: string, turns: number): RecordedConversation {
  const messages = Array.from({ length: turns }, (_, turn) => [
    { role: 'user' as const, content: `Question ${turn}` },
    { role: 'assistant' as const, content: `Answer ${turn}` },
  ]).flat();
  return { id, userId: 'ann', messages };
}

/** Returns the conversation as the module would store it. */
function wellReplayed(): ReplayedConversation {
  const record = conversation('a');
  const writers = ['t0', 't0', 't1', 't1', 't1', 't1', 't2', 't2'];
  const messages = record.messages.map(({ state, ...message }, index): ConversationMessage => {
    const place = { id: `m${index}`, position: index + 1, createdAt: '', turnId: writers[index] };
    return { ...toDraft(message), ...(state === undefined ? {} : { metadata: { state } }), ...place };
  });
  const turns = turnsOf(record).map(
    (_, index) => ({ id: `t${index}`, position: index + 1, turnIndex: index, status: 'awaiting-input' }) as Turn,
  );
  return { record, stored: { messages, turns }, turnIds: ['t0', 't1', 't2'], effects: steps() };
}

function steps(): Map<string, number[]> {
  return new Map([
    ['t1', [0, 1, 2]],
    ['t2', [0]],
  ]);
}

let files = 0;

function recordFile(...lines: readonly unknown[]): string {
  const file = join(FOLDER, `recorded-${(files += 1)}.jsonl`);
  writeFileSync(file, lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join(''));
  return file;
}

interface Ended {
  readonly code: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the built tool, like `npm run replay`. */
function replay(...args: string[]): Promise<Ended> {
  const entry = join(import.meta.dirname, '../../build/test/replay/replay.js');
  if (!existsSync(entry)) throw new Error('The replay tool is not built: npm run build && npm run build:samples');
  return new Promise((resolve) => {
    const env = { ...process.env, TMPDIR: FOLDER };
    execFile(process.execPath, [entry, ...args], { env }, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? (error ? 'killed' : 0), stdout, stderr }),
    );
  });
}

/** Parses the final table by column. */
function cells(stdout: string): Record<string, string> {
  const [head = [], row = []] = stdout
    .split('\n')
    .filter((line) => line.startsWith('│'))
    .map((line) => line.split('│').slice(1, -1));
  return Object.fromEntries(head.map((name, index) => [name.trim(), row[index]?.trim() ?? '']));
}
