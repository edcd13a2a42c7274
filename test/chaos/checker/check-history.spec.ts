import { type Claim } from '../history/history.js';
import { checkHistory, type Limits, type RuleName } from './check-history.js';
import { MAX_LOST, tellCulprit } from './simulation/culprit-story.js';
import { Forgery } from './simulation/forgery.js';
import { tellStory } from './simulation/story.js';

const LEASE_MS = 2000;

/** What a story is found to be that was changed. */
function judge(edit: (forgery: Forgery) => void, limits: Partial<Limits> = {}, tell = tellStory) {
  const forgery = new Forgery(tell());
  edit(forgery);
  return checkHistory(forgery.entries, forgery.contents, { leaseMs: LEASE_MS, ...limits });
}

type Forging = readonly [what: string, message: RegExp, edit: (story: Forgery) => void, limits?: Partial<Limits>];

/** Each is found by this rule and by no other. */
function forgeries(rule: RuleName, all: readonly Forging[], tell = tellStory): void {
  it.each(all.map(([what, ...rest]) => [what, rest] as const))('%s', (_, [message, edit, limits]) => {
    const { violations } = judge(edit, limits, tell);
    expect(violations.filter((violation) => violation.rule !== rule)).toEqual([]);
    expect(violations.map((violation) => violation.message)).toContainEqual(expect.stringMatching(message));
  });
}

/** The claim of a turn that a call gave or handed over. */
function claimOf({ end }: { readonly end: { readonly value: unknown } }): Claim {
  const value = end.value as Claim | { readonly next: Claim };
  return 'next' in value ? value.next : value;
}

describe('checkHistory', () => {
  it('TRN-15 finds nothing wrong with a run in which workers were killed and frozen and answers were lost', () => {
    const verdict = judge(() => undefined);
    expect(verdict).toEqual({
      violations: [],
      longestStallMs: 2001,
      sessions: 3,
      turns: 8,
      turnsByStatus: { 'awaiting-input': 3, completed: 1, failed: 1, cancelled: 2, superseded: 1 },
      claims: 10,
      attempts: 10,
      effects: 12,
      uses: 7,
      events: 5,
      calls: 46,
      unknownCalls: 4,
      faults: 4,
      crashes: 0,
    });
  });

  describe('accepted', () => {
    forgeries('accepted', [
      [
        'TRN-15 sees that an accepted turn is lost',
        /turn-7 is not in the ledger, but there was cancel/,
        (story) => void story.session('stopped').turns.pop(),
      ],
      [
        'TRN-15 sees that a turn is lost with all that it did',
        /turn-8 is not in the ledger, but there was the claim/,
        (story) => Object.assign(story.session('frozen'), { turns: [], messages: [], checkpoints: [], events: {} }),
      ],
      [
        'TRN-15 sees a turn that is in the ledger twice',
        /turn turn-7 is in the ledger twice/,
        (story) => void story.session('stopped').turns.push({ ...story.turn('b5'), position: 6 }),
      ],
      [
        'TRN-15 sees that an accepted turn is lost of which nobody heard again',
        /told turn turn-99 .* not in the ledger/,
        (story) => {
          const message = { sessionId: 'frozen', key: 'c2', whenBusy: 'enqueue' } as const;
          story.add(9_000_000, 'client-1', 'submit', message, { turnId: 'turn-99', position: 2 });
        },
      ],
      [
        'TRN-15 sees that events were read of a turn that is lost',
        /turn-99 is not in the ledger, but reader/,
        (story) =>
          story.note({
            at: 9,
            process: 'client-1',
            what: 'event',
            turnId: 'turn-99',
            reader: 'r',
            offset: 1,
            name: 'piece',
          }),
      ],
      [
        'TRN-05 sees a turn that nobody submitted',
        /turn-7 .* never accepted: nobody sent it/,
        (story) => {
          const { sent, end } = story.call('submit', { key: 'b5' });
          story.remove(sent, end);
        },
      ],
      [
        'TRN-05 sees a turn whose submit was refused',
        /turn-7 .* never accepted: every submit failed/,
        (story) => (story.call('submit', { key: 'b5' }).end.type = 'fail'),
      ],
      [
        'TRN-05 sees two turns of one key',
        /key b5 has two turns/,
        (story) =>
          story.session('stopped').turns.push({ ...story.turn('b5'), id: 'turn-9', position: 6, status: 'failed' }),
      ],
      [
        'TRN-05 sees that a submit was told another position',
        /told turn turn-2 at position 7, which is in session retried at position 2/,
        (story) => (story.call('submit', { key: 'a2' }).end.value.position = 7),
      ],
      [
        'TRN-05 sees that a submit was told the turn of another message',
        /told turn turn-1 .* whose key is a1/,
        (story) => {
          const message = { sessionId: 'retried', key: 'a3', whenBusy: 'enqueue' } as const;
          story.add(9_000_000, 'client-1', 'submit', message, { turnId: 'turn-1', position: 1 });
        },
      ],
      [
        'TRN-05 sees a turn with the text of another message',
        /its text is else, its key b5/,
        (story) => (story.turn('b5').request.input.text = 'else'),
      ],
      [
        'TRN-02 sees a turn in the lane of another session',
        /says that it belongs to session frozen/,
        (story) => (story.turn('b5').sessionId = 'frozen'),
      ],
    ]);
  });

  describe('settled once', () => {
    forgeries('settled once', [
      [
        'TRN-15 sees a turn that never ends',
        /turn-7 .* has not ended/,
        (story) => (story.turn('b5').status = 'queued'),
      ],
      [
        'TRN-15 sees a turn that settled twice',
        /turn-1 .* settled twice/,
        (story) => {
          const { sent, end } = story.call('retry', {});
          Object.assign(sent, {
            op: 'settle',
            args: { ...sent.args, status: 'awaiting-input', text: 'a1 worker-1/1' },
          });
          Object.assign(end, { value: { next: null } });
        },
      ],
      [
        'TRN-15 sees that the ledger has another answer than the one that was settled',
        /has the answer "c1 worker-2\/10", but settle .* was completed with the answer "c1 else"/,
        (story) => story.calls('settle', { sessionId: 'frozen' }).forEach(({ sent }) => (sent.args.text = 'c1 else')),
      ],
      [
        'TRN-15 sees that the ledger has another end than the one that was settled',
        /turn-6 .*nothing in the history can have ended it as cancelled/,
        (story) => {
          story.turn('b4').status = 'cancelled';
        },
      ],
      [
        'TRN-15 sees that a settled turn is claimed again',
        /turn-8 .*: after settle .* there was the claim/,
        (story) => {
          const { turnId } = claimOf(story.call('claim', { sessionId: 'frozen' }));
          const claim = {
            sessionId: 'frozen',
            turnId,
            fence: 3,
            position: 1,
            failures: 0,
            lost: 1,
            steps: ['pay out'],
          };
          story.turn('c1').lost = 2;
          story.add(90_000_000, 'worker-2', 'claim', { sessionId: 'frozen' }, claim);
        },
      ],
      [
        'TRN-09 sees that a cancelled turn gets another attempt',
        /turn-2 .*: after cancel .* there was the claim/,
        (story) => {
          const [killed] = story.notes('fault');
          const { id: turnId } = story.turn('a2');
          story.add(killed.at + 10, 'client-1', 'cancel', { turnId, mode: 'cancel' }, { status: 'running' });
        },
      ],
      [
        'TRN-10 sees that a client was told another answer',
        /but result .* was told the answer "a1 else"/,
        (story) => (story.call('result', { turnId: 'turn-1' }).end.value.text = 'a1 else'),
      ],
      [
        'TRN-10 sees that a client was told another end',
        /result .* was told that it is failed/,
        (story) => (story.call('result', { turnId: 'turn-5' }).end.value.status = 'failed'),
      ],
      [
        'TRN-10 sees that a client was told a result before there was one',
        /result .* was told that it is over before it can have been/,
        (story) => {
          const settle = story.call('settle', { turnId: 'turn-1' });
          const { sent, end } = story.call('result', { turnId: 'turn-1' });
          sent.at = settle.sent.at - 20;
          end.at = settle.sent.at - 10;
        },
      ],
      [
        'TRN-01 sees a turn that was cancelled by nobody',
        /turn-7 .*nothing in the history can have ended it as cancelled/,
        (story) => {
          const { sent, end } = story.call('cancel', {});
          story.remove(sent, end);
        },
      ],
      [
        'TRN-06 sees a turn that was superseded by nobody',
        /turn-4 .*nothing in the history can have ended it as superseded/,
        (story) => (story.call('submit', { key: 'b3' }).sent.args.whenBusy = 'enqueue'),
      ],
      [
        'TRN-06 sees a turn that was superseded although it had begun',
        /turn-4 .*nothing in the history can have ended it as superseded/,
        (story) => (story.turn('b2').startedAt = story.turn('b1').startedAt),
      ],
      [
        'TRN-01 sees a turn that had ended and goes on',
        /turn-1 .*: after retry .* there was the claim/,
        (story) => (story.call('retry', {}).end.value.status = 'cancelled'),
      ],
    ]);
  });

  describe('order', () => {
    forgeries('order', [
      [
        'TRN-02 sees a gap in the lane',
        /turn-7 has position 7; 5 was to be the next one/,
        (story) => {
          story.turn('b5').position = 7;
          story.call('submit', { key: 'b5' }).end.value.position = 7;
        },
      ],
      [
        'TRN-02 sees positions against the order of acceptance',
        /turn-2 .* was accepted by .*, before .*turn-1/,
        (story) => {
          const { sent, end } = story.call('submit', { key: 'a2' });
          sent.at -= 10_000;
          end.at -= 10_000;
        },
      ],
      [
        'TRN-02 sees that a turn was claimed before the one that was accepted first',
        /claim of turn x2 .* was given out before the claim of turn x1/,
        (story) => {
          addLane(story);
          addRun(story, 'x2', 2, 1, 1000);
          addRun(story, 'x1', 1, 2, 2000);
        },
      ],
      [
        'TRN-02 sees that a turn was claimed while one before it was open, which nobody claimed',
        /x1 .* cannot have ended before 101500, but by then there was the claim of turn x2/,
        (story) => {
          addLane(story);
          story.session('forged').turns[0].status = 'cancelled';
          addRun(story, 'x2', 2, 1, 1000);
          story.add(101_500, 'client-1', 'cancel', { turnId: 'x1', mode: 'cancel' }, { status: 'cancelled' });
        },
      ],
      [
        'TRN-02 sees that a claim gave another position than the ledger has',
        /turn-8 .*there was the claim of turn turn-8 \(position 2\)/,
        (story) =>
          story
            .calls('claim', { sessionId: 'frozen' })
            .filter(({ end }) => end)
            .forEach(({ end }) => Object.assign(end.value as Claim, { position: 2 })),
      ],
    ]);
  });

  describe('fences', () => {
    forgeries('fences', [
      [
        'TRN-03 sees that a fence was given twice',
        /two have the same fence/,
        (story) => {
          Object.assign(claimOf(story.call('claim', { sessionId: 'stopped' }, 1)), { fence: 1 });
          story.call('renew', { turnId: 'turn-3' }).sent.args.fence = 1;
          story.call('settle', { turnId: 'turn-3' }).sent.args.fence = 1;
        },
      ],
      [
        'TRN-03 sees that fences go back',
        /fences went back: the claim .* fence 2 .* came before the claim .* fence 1/,
        (story) => {
          addLane(story);
          const held = { sessionId: 'forged', turnId: 'x1', fence: 2 };
          story.add(100_600, 'worker-2', 'claim', held, { ...held, position: 1, failures: 0, lost: 0, steps: [] });
          story.add(100_700, 'worker-2', 'release', held, { status: 'queued' });
          addRun(story, 'x1', 1, 1, 1000);
          addRun(story, 'x2', 2, 3, 2000);
        },
      ],
      [
        'TRN-03 sees a write that was accepted of a worker that had lost its turn',
        /renew by worker-3 .* was accepted after the claim .* with fence 2 by worker-2/,
        (story) => {
          const held = { sessionId: 'frozen', turnId: 'turn-8', fence: 1 };
          story.add(story.notes('fault')[2].at + 20, 'worker-3', 'renew', held, null);
        },
      ],
      [
        'TRN-03 sees a write with a fence that nobody was given',
        /was accepted, but nobody was given that fence/,
        (story) => {
          const held = { sessionId: 'frozen', turnId: 'turn-8', fence: 77 };
          story.add(story.notes('fault')[2].at, 'worker-2', 'renew', held, null);
        },
      ],
      [
        'TRN-03 sees a write with the fence of another worker',
        /renew by worker-3 .* was accepted, but that fence is of the claim .* by worker-2/,
        (story) => {
          const held = { sessionId: 'frozen', turnId: 'turn-8', fence: 2 };
          story.add(story.notes('fault')[2].at, 'worker-3', 'renew', held, null);
        },
      ],
      [
        'TRN-03 sees a write with the fence of another turn',
        /turn turn-2: renew .* was accepted, but that fence is of the claim of turn turn-1/,
        (story) => {
          const { end } = story.call('claim', { sessionId: 'retried' });
          story.add(end.at + 10, 'worker-1', 'renew', { ...claimOf({ end }), turnId: 'turn-2' }, null);
        },
      ],
      [
        'TRN-03 sees a write that was accepted of a worker that had let go of its turn',
        /renew by worker-1 .* was accepted after retry/,
        (story) => {
          const { sent, end } = story.call('retry', {});
          story.add(end.at + 10, 'worker-1', 'renew', sent.args, null);
        },
      ],
      [
        'TRN-03 sees that a turn was taken from a worker whose lease lived',
        /claim .* by worker-2 .* while the lease lived of the claim .* by worker-3/,
        () => undefined,
        { leaseMs: 5000 },
      ],
    ]);
  });

  describe('handlers', () => {
    const withoutFaults = (story: Forgery): void => story.remove(...story.notes('fault').slice(1, 3));

    forgeries('handlers', [
      [
        'TRN-03 sees two handlers of a session at a time',
        /two ran at a time, .*worker-3\/9.* beside .*worker-2\/10/,
        withoutFaults,
      ],
      [
        'TRN-03 sees a handler that goes on although its process could know',
        /two ran at a time/,
        (story) => (story.notes('fault')[2].at -= 590_000),
      ],
      [
        'TRN-03 sees a handler that goes on although the store has told its process',
        /two ran at a time/,
        (story) => {
          withoutFaults(story);
          const [abort] = story.notes('abort').slice(-1);
          const renewal = { sessionId: 'frozen', turnId: 'turn-8', fence: 1 };
          story.add(abort.at - 590_000, 'worker-3', 'renew', renewal, null);
          Object.assign(story.entries[story.entries.length - 1], { type: 'fail', error: 'TURN_FENCED' });
        },
      ],
      [
        'TRN-03 sees a handler that nobody has claimed a turn for',
        /worker-2\/99 .* attempt 9, began without a claim/,
        (story) => addHandler(story, { number: 9 }),
      ],
      [
        'TRN-03 sees two handlers for one claim',
        /one claim began two handlers/,
        (story) => addHandler(story, { number: 2 }),
      ],
    ]);

    it.each<readonly [string, (story: Forgery) => void]>([
      [
        'is dead',
        (story) => {
          const [begin] = story.notes('begin').slice(-1);
          story.remove(...story.entries.filter(({ process, at }) => process === 'worker-3' && at > begin.at));
        },
      ],
      [
        'has no answer from the store',
        (story) => {
          const [begin] = story.notes('begin').slice(-1);
          story.add(begin.at - 10, 'worker-3', 'renew', { sessionId: 'frozen', turnId: 'turn-8', fence: 1 });
        },
      ],
    ])('TRN-03 does not blame a handler whose process %s', (_, edit) => {
      const { violations } = judge((story) => {
        withoutFaults(story);
        edit(story);
      });
      expect(violations).toEqual([]);
    });
  });

  describe('losses', () => {
    it('FIX-06 finds nothing wrong with a turn that ended its process again and again, and with those beside it', () => {
      const verdict = judge(() => undefined, { maxLost: MAX_LOST }, tellCulprit);
      expect(verdict).toMatchObject({
        violations: [],
        turnsByStatus: { failed: 1, 'awaiting-input': 4 },
        attempts: 14,
        crashes: 5,
        faults: 5,
      });
    });

    it('FIX-06 finds nothing wrong with an attempt that was lost before its process had the answer', () => {
      const { violations } = judge(
        (story) => {
          const [, { end }] = story.calls('claim', { sessionId: 'culprit' });
          const ofSecond = (note: { readonly process: string; readonly turnId: string }): boolean =>
            note.process === 'worker-1.2' && note.turnId === 'turn-1';
          story.remove(end, ...[...story.notes('begin'), ...story.notes('crash')].filter(ofSecond));
        },
        { maxLost: MAX_LOST },
        tellCulprit,
      );
      expect(violations).toEqual([]);
    });

    forgeries(
      'losses',
      [
        [
          'FIX-06 sees that a turn failed because it was lost, which ends no process',
          /turn-1 .* failed as WORKER_LOST; its message ends no process/,
          (story) => (story.turn('k1').request.input.metadata = { fails: true, crashAfterMs: null }),
        ],
        [
          'FIX-06 sees that a turn without a script failed because it was lost',
          /turn-1 .* failed as WORKER_LOST; its message ends no process/,
          (story) => delete story.turn('k1').request.input.metadata,
        ],
        [
          'FIX-06 sees that a turn was lost too often',
          /turn-1 .* was lost 5 times and failed as WORKER_LOST; the limit is 4/,
          () => undefined,
          { maxLost: 4 },
        ],
        [
          'FIX-06 sees that a turn failed before it was lost often enough',
          /turn-1 .* was lost 5 times and failed as WORKER_LOST; the limit is 6/,
          () => undefined,
          { maxLost: 6 },
        ],
        [
          'FIX-06 sees that a turn succeeded that was lost too often',
          /turn-2 .* was lost 2 times and did not fail as WORKER_LOST; the limit is 2/,
          () => undefined,
          { maxLost: 2 },
        ],
        [
          'FIX-06 sees that a count of lost attempts goes back',
          /turn-2 .*: lost went back from 1 to 0, the claim/,
          (story) => countLost(story, 'one', 2, 0),
        ],
        [
          'FIX-06 sees that a stored count of lost attempts goes back',
          /turn-2 .*: lost went back from 2 to 1 in the store/,
          (story) => (story.turn('i1').lost = 1),
        ],
        [
          'FIX-06 sees that a claim does not count the attempt that was lost before it',
          /turn-5 .*: 0 attempts are counted as lost, 1 to 1 were before the claim/,
          (story) => countLost(story, 'three', 1, 0),
        ],
        [
          'FIX-06 sees that a claim counts an attempt as lost that was not',
          /turn-3 .*: 2 attempts are counted as lost, 1 to 1 were before the claim/,
          (story) => countLost(story, 'two', 1, 2),
        ],
        [
          'FIX-06 sees that a handler was begun of which no attempt is counted',
          /turn-1 .*: 4 attempts are counted as lost, 5 to 5 were/,
          (story) => (story.turn('k1').lost = 4),
          { maxLost: 4 },
        ],
        [
          'FIX-06 sees that an attempt is counted as lost that succeeded',
          /turn-4 .*: 1 attempts are counted as lost, 0 to 0 were/,
          (story) => (story.turn('k2').lost = 1),
        ],
      ],
      tellCulprit,
    );

    forgeries('losses', [
      [
        'FIX-06 sees that an attempt is counted as lost that failed',
        /turn-1 .*: 1 attempts are counted as lost, 0 to 0 were/,
        (story) => (story.turn('a1').lost = 1),
      ],
    ]);
  });

  describe('suspects', () => {
    /** The first suspect runs until the second one has begun. */
    const overlap = (story: Forgery): { readonly endedAt: number; readonly attempt: string } => {
      const settle = story.call('settle', { sessionId: 'one' });
      const end = story.notes('end').find(({ turnId }) => turnId === 'turn-2');
      const begin = story.notes('begin').findLast(({ turnId }) => turnId === 'turn-3');
      if (!end || !begin) throw new Error('The story does not have these.');
      const { at: endedAt, attempt } = end;
      for (const [index, entry] of [end, settle.sent, settle.end].entries()) entry.at = begin.at + 10 * (index + 1);
      return { endedAt, attempt };
    };

    forgeries(
      'suspects',
      [
        [
          'FIX-06 sees that two suspects run in a process at a time',
          /two suspects ran at a time: handler .* of turn turn-3, .* in worker-1.3 .* beside handler .* of turn turn-2/,
          overlap,
        ],
      ],
      tellCulprit,
    );

    it('FIX-06 finds nothing wrong with suspects in two processes', () => {
      const { violations } = judge(
        (story) => {
          overlap(story);
          const calls = [...story.calls('claim', { sessionId: 'two' }), ...story.calls('settle', { sessionId: 'two' })];
          const notes = [...story.notes('begin'), ...story.notes('end')].filter(({ turnId }) => turnId === 'turn-3');
          for (const entry of [...calls.flatMap(({ sent, end }) => [sent, end]), ...notes]) {
            const own = entry as { process: string };
            if (own.process === 'worker-1.3') own.process = 'worker-2.1';
          }
        },
        {},
        tellCulprit,
      );
      expect(violations).toEqual([]);
    });

    it('FIX-06 finds nothing wrong with a suspect that begins while an aborted one still runs', () => {
      const { violations } = judge(
        (story) => {
          const { endedAt: at, attempt } = overlap(story);
          story.note({ at, process: 'worker-1.3', what: 'abort', turnId: 'turn-2', attempt });
        },
        {},
        tellCulprit,
      );
      expect(violations).toEqual([]);
    });
  });

  describe('checkpoints', () => {
    const second = (story: Forgery) => story.session('retried').checkpoints[1];

    forgeries('checkpoints', [
      ['BOT-20 sees a gap', /checkpoint 2 of turn turn-2 stands where 1/, (story) => (second(story).turnIndex = 2)],
      ['BOT-20 sees a fork', /checkpoint 0 of turn turn-2 stands where 1/, (story) => (second(story).turnIndex = 0)],
      [
        'BOT-20 sees a wrong parent',
        /checkpoint 1 .* has the parent undefined/,
        (story) => delete second(story).parent,
      ],
      [
        'BOT-20 sees a checkpoint of a turn that failed',
        /checkpoint 1 of turn turn-6 belongs to no turn that succeeded/,
        (story) => {
          const { checkpoints } = story.session('stopped');
          checkpoints.push({ ...checkpoints[0], turnIndex: 1, parent: 0, turnId: 'turn-6' });
        },
      ],
      [
        'BOT-20 sees a turn without its checkpoint',
        /turn turn-2 .* without a checkpoint/,
        (story) => void story.session('retried').checkpoints.pop(),
      ],
      [
        'BOT-20 sees a state in which a turn is missing',
        /checkpoint 1 .* has the state/,
        (story) =>
          (second(story).state = {
            ...second(story).state,
            chain: story.session('retried').checkpoints[0].state.chain,
          }),
      ],
      [
        'BOT-20 sees a turn that counts twice',
        /checkpoint 1 .* has the state/,
        (story) => (second(story).state = { ...second(story).state, turns: 3 }),
      ],
      [
        'TRN-02 sees checkpoints against the order of the lane',
        /checkpoint 0 of turn turn-2 stands where that of turn turn-1/,
        (story) => {
          story.session('retried').checkpoints[0].turnId = 'turn-2';
          second(story).turnId = 'turn-1';
        },
      ],
      [
        'BOT-20 sees a turn with another index',
        /says that its index is 5/,
        (story) => (story.turn('a2').turnIndex = 5),
      ],
      [
        'BOT-20 sees a failed turn with an index',
        /turn turn-6, which is failed, has turn index 1/,
        (story) => (story.turn('b4').turnIndex = 1),
      ],
    ]);
  });

  describe('messages', () => {
    const say = (
      story: Forgery,
      sessionId: string,
      turnId: string,
      role: 'user' | 'assistant',
      content: string,
    ): void => {
      const { messages } = story.session(sessionId);
      const position = messages.length + 1;
      messages.push({ id: `forged.${position}`, position, role, content, turnId, createdAt: '' });
    };

    forgeries('messages', [
      [
        'TRN-15 sees that an answer is missing',
        /turn-2 .* left "user: a2" instead of/,
        (story) => void story.session('retried').messages.pop(),
      ],
      [
        'TRN-15 sees an answer that is there twice',
        /turn-2 .* left "user: a2", "assistant: .*", "assistant:/,
        (story) => say(story, 'retried', 'turn-2', 'assistant', String(story.turn('a2').reply?.text)),
      ],
      [
        'TRN-15 sees a message that is there twice',
        /message turn-1.0 .* is there twice/,
        (story) => (story.session('retried').messages[1].id = 'turn-1.0'),
      ],
      [
        'BOT-08 sees what a failed turn said',
        /turn-6 .* left "user: b4"/,
        (story) => say(story, 'stopped', 'turn-6', 'user', 'b4'),
      ],
      [
        'TRN-06 sees what a superseded turn said',
        /turn-4 .* left "user: b2"/,
        (story) => {
          say(story, 'stopped', 'turn-4', 'user', 'b2');
          swapMessages(story, 'stopped', 2, 3);
        },
      ],
      [
        'TRN-06 sees the answer of a cancelled turn',
        /turn-5 .* left "user: b3", "assistant: else"/,
        (story) => say(story, 'stopped', 'turn-5', 'assistant', 'else'),
      ],
      [
        'TRN-06 sees that a message stays that was rolled back',
        /turn-5 .* left its message, but nobody interrupted it/,
        (story) => (story.call('submit', { key: 'b4' }).sent.args.whenBusy = 'rollback'),
      ],
      [
        'TRN-06 sees that the message of an interrupted turn is gone',
        /turn-5 .* was interrupted while it ran, but left no message/,
        (story) => void story.session('stopped').messages.pop(),
      ],
      [
        'STA-03 sees a gap',
        /at 5, of turn turn-2, stands where 4/,
        (story) => (story.session('retried').messages[3].position = 5),
      ],
      [
        'TRN-02 sees messages against the order of the lane',
        /of turn turn-1 \(position 1\), comes after those of position 2/,
        (story) => {
          swapMessages(story, 'retried', 0, 2);
          swapMessages(story, 'retried', 1, 3);
        },
      ],
      [
        'STA-03 sees a message of no turn',
        /of turn turn-77, belongs to no turn/,
        (story) => say(story, 'stopped', 'turn-77', 'user', 'b7'),
      ],
      [
        'TRN-15 sees an answer that no handler gave',
        /has the answer "a2 worker-9\/1", which no handler/,
        (story) => {
          const text = 'a2 worker-9/1';
          story.turn('a2').reply = { text };
          story.session('retried').messages[3].content = text;
          story.call('settle', { turnId: 'turn-2' }).sent.args.text = text;
        },
      ],
    ]);
  });

  describe('steps', () => {
    const effect = (story: Forgery, attempt: string, step: string): void => {
      const begin = story.notes('begin').find((note) => note.attempt === attempt);
      const end = story.notes('end').find((note) => note.attempt === attempt);
      const at = (end?.at ?? story.notes('fault')[0].at) - 1;
      story.note({
        at,
        process: begin?.process ?? 'worker-1',
        what: 'step',
        turnId: begin?.turnId ?? 'turn-1',
        attempt,
        step,
      });
    };

    forgeries('steps', [
      [
        'BOT-30 sees that a later attempt repeats a stored step',
        /turn-1 .*: step look up was done .* worker-1\/2 .* after saveStep .* fence 1/,
        (story) => effect(story, 'worker-1/2', 'look up'),
      ],
      [
        'BOT-30 sees that an attempt repeats its own stored step',
        /turn-2 .*: step look up was done .* worker-1\/3 .* after saveStep/,
        (story) => effect(story, 'worker-1/3', 'look up'),
      ],
      [
        'ORC-28 sees that a later attempt calls a tool again whose call is stored',
        /turn-1 .*: step tool turn-1-0 was done .* worker-1\/2 .* after saveStep .* fence 1/,
        (story) => effect(story, 'worker-1/2', 'tool turn-1-0'),
      ],
      [
        'BOT-30 sees a step with two values',
        /step look up is "worker-1\/1" after .*, and "else" after/,
        (story) => {
          const { end } = story.call('claim', { sessionId: 'retried' }, 1);
          const { sessionId, turnId, fence } = claimOf({ end });
          const save = { sessionId, turnId, fence, step: 'look up', value: 'else' };
          story.add(end.at + 10, 'worker-1', 'saveStep', save, { value: 'else' });
        },
      ],
      [
        'BOT-30 sees that a claim comes without a stored step',
        /step look up is missing from the claim of turn turn-2/,
        (story) => Object.assign(claimOf(story.call('claim', { sessionId: 'retried' }, 2)), { steps: [] }),
      ],
      [
        'BOT-30 sees a stored step that nobody has stored',
        /nobody has stored step ghost/,
        (story) => Object.assign(claimOf(story.call('claim', { sessionId: 'frozen' })), { steps: ['ghost'] }),
      ],
      [
        'BOT-30 sees a step of a handler that never began',
        /by a handler that never began/,
        (story) => effect(story, 'worker-1/99', 'look up'),
      ],
    ]);
  });

  describe('tools', () => {
    type State = NonNullable<ReturnType<Forgery['session']>['orchestration']>;
    const state = (story: Forgery): State => story.session('retried').orchestration!;
    const told = (attempt: string, tokens: number) => (story: Forgery) => {
      for (const begin of story.notes('begin')) if (begin.attempt === attempt) begin.tokens = tokens;
    };

    forgeries('tools', [
      [
        'ORC-28 sees that a use is lost',
        /session retried has the state/,
        (story) => void state(story).toolHistory.pop(),
      ],
      [
        'ORC-28 sees a use that is there twice',
        /session retried has the state .*turn-2-0: ask in recover","turn-2-0: ask in recover"\]/,
        (story) => void state(story).toolHistory.push({ ...state(story).toolHistory[2] }),
      ],
      [
        'ORC-28 sees a use of a turn that failed',
        /session retried has the state .*turn-6-0/,
        (story) => void state(story).toolHistory.push({ ...state(story).toolHistory[2], callId: 'turn-6-0' }),
      ],
      [
        'ORC-28 sees what only turns did that failed',
        /session stopped has the state .*turn-6-0.* instead of .*"toolHistory":\[\]/,
        (story) => {
          const failed = { ...state(story).toolHistory[2], callId: 'turn-6-0' };
          story.session('stopped').orchestration!.toolHistory.push(failed);
        },
      ],
      [
        'ORC-28 sees that all uses are lost',
        /session retried has the state null instead of/,
        (story) => (story.session('retried').orchestration = null),
      ],
      [
        'TRN-02 sees uses against the order of the lane',
        /session retried has the state/,
        (story) => void state(story).toolHistory.reverse(),
      ],
      [
        'ORC-28 sees a use that failed as one that did not',
        /look in collect, failed"/,
        (story) => (state(story).toolHistory[0].outcome = 'failed'),
      ],
      [
        'ORC-11 sees tokens that were added twice',
        /"totalTokens":134} instead of .*"totalTokens":94}/,
        (story) => (state(story).cumulativeTokenUsage.totalTokens += 40),
      ],
      ['ORC-25 sees another active step', /"activeStep":"act"/, (story) => (state(story).activeStep = 'act')],
      ['ORC-21 sees another place in the sequence', /"sequenceIndex":2/, (story) => (state(story).sequenceIndex = 2)],
      [
        'ORC-01 sees other recent tools',
        /"recentlyUsedTools":\["look"\]/,
        (story) => (state(story).recentlyUsedTools = ['look']),
      ],
      [
        'ORC-30 sees a handler that was not told what the turn before it did',
        /worker-2\/4 of turn turn-2, .* was told of 24 tokens; 54 had been taken/,
        told('worker-2/4', 24),
      ],
      [
        'ORC-30 FIX-15 sees a handler that was told of more tokens than an earlier attempt of its turn took',
        /worker-1\/2 of turn turn-1, .* was told of 35 tokens; 24 had been taken/,
        told('worker-1/2', 35),
      ],
    ]);
  });

  describe('events', () => {
    const stored = (story: Forgery) =>
      story.session('retried').events['turn-1'] as { offset: number; type: string; data: null }[];
    const given = (story: Forgery, offset: number, name: string, at = 9_000_000): void =>
      story.note({ at, process: 'client-1', what: 'event', turnId: 'turn-1', reader: 'reader-2', offset, name });

    forgeries('events', [
      ['TRN-30 sees a gap', /stored event 3 stands where 2/, (story) => void stored(story).splice(1, 1)],
      [
        'TRN-30 sees that a confirmed event is lost',
        /events up to 4 were stored by append .*, but there are 3/,
        (story) => void stored(story).pop(),
      ],
      [
        'TRN-30 sees two batches at one place',
        /1 events up to 2 by append .* overlap those up to 2/,
        (story) => (story.call('append', { fence: 2 }).end.value.last = 2),
      ],
      [
        'TRN-30 sees a batch that is there twice',
        /4 events are stored, but 3 were sent/,
        (story) => stored(story).push({ offset: 5, type: 'piece', data: null }),
      ],
      [
        'TRN-32 sees a mark of an attempt that there was not',
        /2 times another attempt is marked, but 2 claims/,
        (story) => (stored(story)[3].type = 'attempt'),
      ],
      [
        'TRN-32 sees that a reader was not given an event',
        /reader reader-1 was given event 3 .* after event 1/,
        (story) => story.remove(story.notes('event')[1]),
      ],
      [
        'TRN-32 sees that a reader was not given the first events',
        /reader reader-2 was given event 3 first/,
        (story) => given(story, 3, 'attempt'),
      ],
      [
        'TRN-32 sees that a reader was given an event twice',
        /reader reader-2 was given event 1 .* after event 1/,
        (story) => {
          given(story, 1, 'piece');
          given(story, 1, 'piece');
        },
      ],
      [
        'TRN-32 sees that a reader was given something else than is stored',
        /was given event 2 \(attempt\) .* but stored is piece/,
        (story) => (story.notes('event')[1].name = 'attempt'),
      ],
      [
        'TRN-30 sees that a reader was given what is not stored',
        /was given event 5 \(piece\) .* but stored is nothing/,
        (story) => given(story, 5, 'piece'),
      ],
      [
        'TRN-30 sees an event after the end',
        /was given event 6 \(piece\) .* after the end/,
        (story) => {
          given(story, 5, 'settled');
          given(story, 6, 'piece');
        },
      ],
      [
        'TRN-30 sees an end that leaves events out',
        /was given event 3 \(settled\) .* but 4 are stored/,
        (story) => given(story, 3, 'settled'),
      ],
      [
        'TRN-30 sees an end that comes too early',
        /was given event 5 \(settled\) .* before the turn can have ended/,
        (story) => given(story, 5, 'settled', story.call('settle', { turnId: 'turn-1' }).sent.at - 10),
      ],
    ]);
  });

  describe('scripts', () => {
    const USED = [
      { tool: 'look', tokens: 10, fails: false },
      { tool: 'drop', tokens: 20, fails: false },
    ];
    const AS_IT_WAS = { steps: 1, emits: 1, failures: 1, fails: false, tools: USED };
    const tell = (story: Forgery, key: string, script: object): void => {
      story.turn(key).request.input.metadata = { ...AS_IT_WAS, ...script };
    };

    forgeries('scripts', [
      ['TRN-11 sees that a turn failed that was not to', /turn-6 .* was not to fail/, (story) => tell(story, 'b4', {})],
      [
        'TRN-11 sees an answer of a turn that was to fail',
        /was to fail/,
        (story) => tell(story, 'a1', { fails: true }),
      ],
      [
        'FIX-06 sees an answer of a turn that was to end its process',
        /turn-1 .* was to end each process that ran it/,
        (story) => tell(story, 'a1', { crashAfterMs: 0 }),
      ],
      [
        'FIX-06 sees that a turn failed otherwise that was to end its process',
        /turn-6 .* was not to fail/,
        (story) => tell(story, 'b4', { crashAfterMs: 0 }),
      ],
      [
        'TRN-11 sees that an attempt succeeded that was to fail',
        /1 attempts failed or were lost; 2 were to fail/,
        (story) => tell(story, 'a1', { failures: 2 }),
      ],
      [
        'BOT-30 sees an answer without a step',
        /ended with 2 stored steps; 3 were to be/,
        (story) => tell(story, 'a1', { steps: 3 }),
      ],
      [
        'ORC-28 sees an answer without a use of a tool',
        /turn-1 .* used .*"drop".*; .*"ask".* were to be/,
        (story) => tell(story, 'a1', { tools: [...USED, { tool: 'ask', tokens: 1, fails: false }] }),
      ],
      [
        'TRN-30 sees that an event was never sent to the store',
        /1 events were stored with fence 2; 2 were to be/,
        (story) => tell(story, 'a1', { emits: 2 }),
      ],
    ]);

    it('TRN-30 finds nothing wrong with turns that did what they were told', () => {
      const { violations } = judge((story) => {
        tell(story, 'a1', {});
        tell(story, 'b4', { fails: true });
        tell(story, 'b5', {});
      });
      expect(violations).toEqual([]);
    });

    it('TRN-30 finds nothing wrong with events that could not be stored', () => {
      const { violations } = judge((story) => {
        tell(story, 'a1', { emits: 4 });
        const batch = { ...story.call('append', { fence: 2 }).sent.args, number: 2, count: 3 };
        story.add(story.call('settle', { turnId: 'turn-1' }).sent.at - 10, 'worker-1', 'append', batch);
      });
      expect(violations).toEqual([]);
    });
  });

  describe('signals', () => {
    forgeries('signals', [
      [
        'TRN-13 sees two signals that count',
        /two count/,
        (story) => (story.call('signal', {}, 1).end.value.accepted = true),
      ],
      [
        'TRN-13 sees that the first signal does not count',
        /signal by client-1 .* another one was first, but none was/,
        (story) => (story.call('signal', {}).end.value.accepted = false),
      ],
    ]);
  });

  describe('idle', () => {
    forgeries('idle', [
      ['TRN-21 sees what is left over', /left over: 1 job/, (story) => void story.contents.leftovers.push('1 job')],
      [
        'TRN-15 sees a lane that still has a head',
        /the lane has a head, turn turn-7/,
        (story) => (story.session('stopped').lane.head = story.turn('b5')),
      ],
      ['TRN-15 sees queued turns', /has 2 queued turns/, (story) => (story.session('stopped').lane.queued = 2)],
      [
        'TRN-11 sees a lane that is not open',
        /the lane is paused/,
        (story) => (story.session('stopped').lane.mode = 'paused'),
      ],
    ]);
  });

  describe('progress', () => {
    const pause = (story: Forgery): number => {
      const { at } = story.call('retry', {}).end;
      story.delayFrom(at + 10, 20_000_000);
      return at;
    };

    forgeries('progress', [
      [
        'TRN-15 sees a lane that stands still',
        /session retried stood still for 20100 ms/,
        (story) => void pause(story),
      ],
      [
        'TRN-13 sees a lane that stands still although its signal is there',
        /session stopped stood still for 20001 ms/,
        (story) => story.delayFrom(story.call('claim', { sessionId: 'stopped' }, 1).sent.at, 20_000_000),
      ],
      [
        'TRN-15 sees any longer stretch than it is told',
        /session retried stood still for 2001 ms/,
        () => undefined,
        { stallMs: 2000 },
      ],
    ]);

    it('TRN-15 sees a turn that nobody goes on with until the end', () => {
      const { violations } = judge((story) => {
        const [first, ...rest] = story.calls('settle', { sessionId: 'frozen' });
        story.remove(...[first, ...rest].flatMap(({ sent, end }) => [sent, end]));
        story.turn('c1').status = 'running';
        story.notes('fault')[3].at += 20_000_000;
      });
      expect(new Set(violations.map(({ rule }) => rule))).toEqual(
        new Set(['settled once', 'checkpoints', 'messages', 'progress']),
      );
    });

    it('TRN-15 does not blame a lane for an outage', () => {
      const { violations, longestStallMs } = judge((story) => {
        const at = pause(story);
        story.note({ at: at + 10, process: 'driver', what: 'outage' });
        story.note({ at: at + 19_000_010, process: 'driver', what: 'recovered' });
      });
      expect(violations).toEqual([]);
      expect(longestStallMs).toBe(2001);
    });
  });

  describe('a broken history', () => {
    it.each<readonly [string, RegExp, (story: Forgery) => void]>([
      ['an answer to nothing', /ends without having begun/, (story) => story.remove(story.call('retry', {}).sent)],
      ['two answers to one call', /ends twice/, (story) => void story.entries.push({ ...story.entries[1] })],
      ['an answer before its call', /ends before it begins/, (story) => (story.call('retry', {}).end.at = 0)],
      ['two handlers of one name', /Two handlers/, (story) => (story.notes('begin')[1].attempt = 'worker-1/1')],
    ])('TRN-15 is refused: %s', (_, message, edit) => {
      expect(() => judge(edit)).toThrow(message);
    });
  });
});

/** A lane of its own with two turns that failed, as soon as somebody runs them: between 100,000 and 110,000. */
function addLane(story: Forgery): void {
  const sessionId = 'forged';
  const failed = (id: string, position: number) => ({
    ...story.turn('b4'),
    id,
    position,
    sessionId,
    idempotencyKey: id,
    request: { input: { text: id } },
  });
  story.contents.sessions.push({
    ...story.session('stopped'),
    sessionId,
    turns: [failed('x1', 1), failed('x2', 2)],
    messages: [],
    checkpoints: [],
    events: {},
  });
  for (const [index, key] of ['x1', 'x2'].entries()) {
    const value = { turnId: key, position: index + 1 };
    story.add(100_000 + index * 100, 'client-1', 'submit', { sessionId, key, whenBusy: 'enqueue' }, value);
  }
}

function addRun(story: Forgery, turnId: string, position: number, fence: number, after: number): void {
  const held = { sessionId: 'forged', turnId, fence };
  const at = 100_000 + after;
  story.add(at, 'worker-2', 'claim', { sessionId: 'forged' }, { ...held, position, failures: 0, lost: 0, steps: [] });
  story.add(at + 100, 'worker-2', 'settle', { ...held, status: 'failed', text: null }, { next: null });
}

/** Another handler for the last turn of the story, after the last one has ended. */
function addHandler(story: Forgery, { number }: { readonly number: number }): void {
  const [{ at, turnId }] = story.notes('end').slice(-1);
  const handler = { process: 'worker-2', turnId, attempt: 'worker-2/99' };
  story.note({ at: at + 1, what: 'begin', sessionId: 'frozen', number, tokens: 24, ...handler });
  story.note({ at: at + 2, what: 'end', ...handler });
}

/** Changes the count of lost attempts in a claim of a session, and the number of its handler's attempt. */
function countLost(story: Forgery, sessionId: string, index: number, lost: number): void {
  const { sent, end } = story.call('claim', { sessionId }, index);
  const claim = claimOf({ end }) as { lost: number; readonly turnId: string };
  claim.lost = lost;
  const begin = story.notes('begin').find(({ turnId, process }) => turnId === claim.turnId && process === sent.process);
  if (begin) begin.number = lost + 1;
}

function swapMessages(story: Forgery, sessionId: string, one: number, other: number): void {
  const { messages } = story.session(sessionId);
  [messages[one], messages[other]] = [messages[other], messages[one]];
  for (const [index, message] of messages.entries()) message.position = index + 1;
}
