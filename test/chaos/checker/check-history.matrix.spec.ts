import { type Claim } from '../history/history.js';
import { checkHistory, type Limits, type RuleName } from './check-history.js';
import { MAX_LOST, culpritRun } from './simulation/culprit-run.js';
import { Forgery } from './simulation/forgery.js';
import { scriptedRun } from './simulation/scripted-run.js';

const LEASE_MS = 2000;

/** Checks a run after an edit. */
function judge(edit: (forgery: Forgery) => void, limits: Partial<Limits> = {}, record = scriptedRun) {
  const forgery = new Forgery(record());
  edit(forgery);
  return checkHistory(forgery.entries, forgery.contents, { leaseMs: LEASE_MS, ...limits });
}

type Forging = readonly [what: string, message: RegExp, edit: (forgery: Forgery) => void, limits?: Partial<Limits>];

/** Registers tests that this rule, and no other, detects each forgery. */
function forgeries(rule: RuleName, all: readonly Forging[], record = scriptedRun): void {
  it.each(all.map(([what, ...rest]) => [what, rest] as const))('%s', (_, [message, edit, limits]) => {
    const { violations } = judge(edit, limits, record);
    expect(violations.filter((violation) => violation.rule !== rule)).toEqual([]);
    expect(violations.map((violation) => violation.message)).toContainEqual(expect.stringMatching(message));
  });
}

/** Returns the claim that a call returned or handed over. */
function claimOf({ end }: { readonly end: { readonly value: unknown } }): Claim {
  const value = end.value as Claim | { readonly next: Claim };
  return 'next' in value ? value.next : value;
}

describe('checkHistory', () => {
  it('TRN-15 accepts a run in which workers were killed and frozen and answers were lost', () => {
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
        'TRN-15 detects that an accepted turn is lost',
        /turn-7 is not in the ledger, but there was cancel/,
        (forgery) => void forgery.session('stopped').turns.pop(),
      ],
      [
        'TRN-15 detects that a turn is lost with all its data',
        /turn-8 is not in the ledger, but there was the claim/,
        (forgery) => Object.assign(forgery.session('frozen'), { turns: [], messages: [], checkpoints: [], events: {} }),
      ],
      [
        'TRN-15 detects a turn that is in the ledger twice',
        /turn turn-7 is in the ledger twice/,
        (forgery) => void forgery.session('stopped').turns.push({ ...forgery.turn('b5'), position: 6 }),
      ],
      [
        'TRN-15 detects that an accepted turn is lost that no client saw again',
        /returned turn turn-99 .* not in the ledger/,
        (forgery) => {
          const message = { sessionId: 'frozen', key: 'c2', whenBusy: 'enqueue' } as const;
          forgery.add(9_000_000, 'client-1', 'submit', message, { turnId: 'turn-99', position: 2 });
        },
      ],
      [
        'TRN-15 detects that events were read of a turn that is lost',
        /turn-99 is not in the ledger, but reader/,
        (forgery) =>
          forgery.note({
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
        'TRN-05 detects a turn that no client submitted',
        /turn-7 .* never accepted: no client sent it/,
        (forgery) => {
          const { sent, end } = forgery.call('submit', { key: 'b5' });
          forgery.remove(sent, end);
        },
      ],
      [
        'TRN-05 detects a turn whose submit was rejected',
        /turn-7 .* never accepted: every submit failed/,
        (forgery) => (forgery.call('submit', { key: 'b5' }).end.type = 'fail'),
      ],
      [
        'TRN-05 detects two turns of one key',
        /key b5 has two turns/,
        (forgery) =>
          forgery.session('stopped').turns.push({ ...forgery.turn('b5'), id: 'turn-9', position: 6, status: 'failed' }),
      ],
      [
        'TRN-05 detects that a submit returned a wrong position',
        /returned turn turn-2 at position 7, which is in session retried at position 2/,
        (forgery) => (forgery.call('submit', { key: 'a2' }).end.value.position = 7),
      ],
      [
        'TRN-05 detects that a submit returned the turn of another message',
        /returned turn turn-1 .* whose key is a1/,
        (forgery) => {
          const message = { sessionId: 'retried', key: 'a3', whenBusy: 'enqueue' } as const;
          forgery.add(9_000_000, 'client-1', 'submit', message, { turnId: 'turn-1', position: 1 });
        },
      ],
      [
        'TRN-05 detects a turn with the text of another message',
        /its text is else, its key b5/,
        (forgery) => (forgery.turn('b5').request.input.text = 'else'),
      ],
      [
        'TRN-02 detects a turn in the lane of another session',
        /says that it belongs to session frozen/,
        (forgery) => (forgery.turn('b5').sessionId = 'frozen'),
      ],
    ]);
  });

  describe('settled once', () => {
    forgeries('settled once', [
      [
        'TRN-15 detects a turn that never ends',
        /turn-7 .* has not ended/,
        (forgery) => (forgery.turn('b5').status = 'queued'),
      ],
      [
        'TRN-15 detects a turn that settled twice',
        /turn-1 .* settled twice/,
        (forgery) => {
          const { sent, end } = forgery.call('retry', {});
          Object.assign(sent, {
            op: 'settle',
            args: { ...sent.args, status: 'awaiting-input', text: 'a1 worker-1/1' },
          });
          Object.assign(end, { value: { next: null } });
        },
      ],
      [
        'TRN-15 detects that the ledger has a different reply than the settle',
        /has the answer "c1 worker-2\/10", but settle .* was completed with the answer "c1 else"/,
        (forgery) =>
          forgery.calls('settle', { sessionId: 'frozen' }).forEach(({ sent }) => (sent.args.text = 'c1 else')),
      ],
      [
        'TRN-15 detects that the ledger has a different status than the settle',
        /turn-6 .*nothing in the history can have ended it as cancelled/,
        (forgery) => {
          forgery.turn('b4').status = 'cancelled';
        },
      ],
      [
        'TRN-15 detects that a settled turn is claimed again',
        /turn-8 .*: after settle .* there was the claim/,
        (forgery) => {
          const { turnId } = claimOf(forgery.call('claim', { sessionId: 'frozen' }));
          const claim = {
            sessionId: 'frozen',
            turnId,
            fence: 3,
            position: 1,
            failures: 0,
            lost: 1,
            steps: ['pay out'],
          };
          forgery.turn('c1').lost = 2;
          forgery.add(90_000_000, 'worker-2', 'claim', { sessionId: 'frozen' }, claim);
        },
      ],
      [
        'TRN-09 detects that a cancelled turn gets another attempt',
        /turn-2 .*: after cancel .* there was the claim/,
        (forgery) => {
          const [killed] = forgery.notes('fault');
          const { id: turnId } = forgery.turn('a2');
          forgery.add(killed.at + 10, 'client-1', 'cancel', { turnId, mode: 'cancel' }, { status: 'running' });
        },
      ],
      [
        'TRN-10 detects that a client received a different reply',
        /but result .* returned the answer "a1 else"/,
        (forgery) => (forgery.call('result', { turnId: 'turn-1' }).end.value.text = 'a1 else'),
      ],
      [
        'TRN-10 detects that a client received a different status',
        /result .* returned that it is failed/,
        (forgery) => (forgery.call('result', { turnId: 'turn-5' }).end.value.status = 'failed'),
      ],
      [
        'TRN-10 detects that a client received a result too early',
        /result .* returned that it is over before it can have been/,
        (forgery) => {
          const settle = forgery.call('settle', { turnId: 'turn-1' });
          const { sent, end } = forgery.call('result', { turnId: 'turn-1' });
          sent.at = settle.sent.at - 20;
          end.at = settle.sent.at - 10;
        },
      ],
      [
        'TRN-01 detects a cancelled turn without a cancel',
        /turn-7 .*nothing in the history can have ended it as cancelled/,
        (forgery) => {
          const { sent, end } = forgery.call('cancel', {});
          forgery.remove(sent, end);
        },
      ],
      [
        'TRN-06 detects a superseded turn without a cause',
        /turn-4 .*nothing in the history can have ended it as superseded/,
        (forgery) => (forgery.call('submit', { key: 'b3' }).sent.args.whenBusy = 'enqueue'),
      ],
      [
        'TRN-06 detects a turn that was superseded after it had begun',
        /turn-4 .*nothing in the history can have ended it as superseded/,
        (forgery) => (forgery.turn('b2').startedAt = forgery.turn('b1').startedAt),
      ],
      [
        'TRN-01 detects a turn that continues after it has ended',
        /turn-1 .*: after retry .* there was the claim/,
        (forgery) => (forgery.call('retry', {}).end.value.status = 'cancelled'),
      ],
    ]);
  });

  describe('order', () => {
    forgeries('order', [
      [
        'TRN-02 detects a gap in the lane',
        /turn-7 has position 7; 5 was to be the next one/,
        (forgery) => {
          forgery.turn('b5').position = 7;
          forgery.call('submit', { key: 'b5' }).end.value.position = 7;
        },
      ],
      [
        'TRN-02 detects positions against the order of acceptance',
        /turn-2 .* was accepted by .*, before .*turn-1/,
        (forgery) => {
          const { sent, end } = forgery.call('submit', { key: 'a2' });
          sent.at -= 10_000;
          end.at -= 10_000;
        },
      ],
      [
        'TRN-02 detects that a turn was claimed before the one that was accepted first',
        /claim of turn x2 .* was granted before the claim of turn x1/,
        (forgery) => {
          addLane(forgery);
          addRun(forgery, 'x2', 2, 1, 1000);
          addRun(forgery, 'x1', 1, 2, 2000);
        },
      ],
      [
        'TRN-02 detects that a turn was claimed before an earlier open turn that was never claimed',
        /x1 .* cannot have ended before 101500, but by then there was the claim of turn x2/,
        (forgery) => {
          addLane(forgery);
          forgery.session('forged').turns[0].status = 'cancelled';
          addRun(forgery, 'x2', 2, 1, 1000);
          forgery.add(101_500, 'client-1', 'cancel', { turnId: 'x1', mode: 'cancel' }, { status: 'cancelled' });
        },
      ],
      [
        'TRN-02 detects that a claim returned a different position than the ledger',
        /turn-8 .*there was the claim of turn turn-8 \(position 2\)/,
        (forgery) =>
          forgery
            .calls('claim', { sessionId: 'frozen' })
            .filter(({ end }) => end)
            .forEach(({ end }) => Object.assign(end.value as Claim, { position: 2 })),
      ],
    ]);
  });

  describe('fences', () => {
    forgeries('fences', [
      [
        'TRN-03 detects that a fence was granted twice',
        /two have the same fence/,
        (forgery) => {
          Object.assign(claimOf(forgery.call('claim', { sessionId: 'stopped' }, 1)), { fence: 1 });
          forgery.call('renew', { turnId: 'turn-3' }).sent.args.fence = 1;
          forgery.call('settle', { turnId: 'turn-3' }).sent.args.fence = 1;
        },
      ],
      [
        'TRN-03 detects decreasing fences',
        /fences went back: the claim .* fence 2 .* came before the claim .* fence 1/,
        (forgery) => {
          addLane(forgery);
          const held = { sessionId: 'forged', turnId: 'x1', fence: 2 };
          forgery.add(100_600, 'worker-2', 'claim', held, { ...held, position: 1, failures: 0, lost: 0, steps: [] });
          forgery.add(100_700, 'worker-2', 'release', held, { status: 'queued' });
          addRun(forgery, 'x1', 1, 1, 1000);
          addRun(forgery, 'x2', 2, 3, 2000);
        },
      ],
      [
        'TRN-03 detects an accepted write of a worker that had lost its turn',
        /renew by worker-3 .* was accepted after the claim .* with fence 2 by worker-2/,
        (forgery) => {
          const held = { sessionId: 'frozen', turnId: 'turn-8', fence: 1 };
          forgery.add(forgery.notes('fault')[2].at + 20, 'worker-3', 'renew', held, null);
        },
      ],
      [
        'TRN-03 detects a write with a fence that was never granted',
        /was accepted, but that fence was never granted/,
        (forgery) => {
          const held = { sessionId: 'frozen', turnId: 'turn-8', fence: 77 };
          forgery.add(forgery.notes('fault')[2].at, 'worker-2', 'renew', held, null);
        },
      ],
      [
        'TRN-03 detects a write with the fence of another worker',
        /renew by worker-3 .* was accepted, but that fence is of the claim .* by worker-2/,
        (forgery) => {
          const held = { sessionId: 'frozen', turnId: 'turn-8', fence: 2 };
          forgery.add(forgery.notes('fault')[2].at, 'worker-3', 'renew', held, null);
        },
      ],
      [
        'TRN-03 detects a write with the fence of another turn',
        /turn turn-2: renew .* was accepted, but that fence is of the claim of turn turn-1/,
        (forgery) => {
          const { end } = forgery.call('claim', { sessionId: 'retried' });
          forgery.add(end.at + 10, 'worker-1', 'renew', { ...claimOf({ end }), turnId: 'turn-2' }, null);
        },
      ],
      [
        'TRN-03 detects an accepted write of a worker that had released its turn',
        /renew by worker-1 .* was accepted after retry/,
        (forgery) => {
          const { sent, end } = forgery.call('retry', {});
          forgery.add(end.at + 10, 'worker-1', 'renew', sent.args, null);
        },
      ],
      [
        'TRN-03 detects that a turn was taken from a worker during its lease',
        /claim .* by worker-2 .* while the lease lived of the claim .* by worker-3/,
        () => undefined,
        { leaseMs: 5000 },
      ],
    ]);
  });

  describe('handlers', () => {
    const withoutFaults = (forgery: Forgery): void => forgery.remove(...forgery.notes('fault').slice(1, 3));

    forgeries('handlers', [
      [
        'TRN-03 detects two handlers of a session at a time',
        /two ran at a time, .*worker-3\/9.* beside .*worker-2\/10/,
        withoutFaults,
      ],
      [
        'TRN-03 detects a handler that continues although its process could know of the loss',
        /two ran at a time/,
        (forgery) => (forgery.notes('fault')[2].at -= 590_000),
      ],
      [
        'TRN-03 detects a handler that continues although the store has fenced its process',
        /two ran at a time/,
        (forgery) => {
          withoutFaults(forgery);
          const [abort] = forgery.notes('abort').slice(-1);
          const renewal = { sessionId: 'frozen', turnId: 'turn-8', fence: 1 };
          forgery.add(abort.at - 590_000, 'worker-3', 'renew', renewal, null);
          Object.assign(forgery.entries[forgery.entries.length - 1], { type: 'fail', error: 'TURN_FENCED' });
        },
      ],
      [
        'TRN-03 detects a handler without a claim',
        /worker-2\/99 .* attempt 9, began without a claim/,
        (forgery) => addHandler(forgery, { number: 9 }),
      ],
      [
        'TRN-03 detects two handlers for one claim',
        /one claim began two handlers/,
        (forgery) => addHandler(forgery, { number: 2 }),
      ],
    ]);

    it.each<readonly [string, (forgery: Forgery) => void]>([
      [
        'is dead',
        (forgery) => {
          const [begin] = forgery.notes('begin').slice(-1);
          forgery.remove(...forgery.entries.filter(({ process, at }) => process === 'worker-3' && at > begin.at));
        },
      ],
      [
        'has no answer from the store',
        (forgery) => {
          const [begin] = forgery.notes('begin').slice(-1);
          forgery.add(begin.at - 10, 'worker-3', 'renew', { sessionId: 'frozen', turnId: 'turn-8', fence: 1 });
        },
      ],
    ])('TRN-03 does not blame a handler whose process %s', (_, edit) => {
      const { violations } = judge((forgery) => {
        withoutFaults(forgery);
        edit(forgery);
      });
      expect(violations).toEqual([]);
    });
  });

  describe('losses', () => {
    it('FIX-06 accepts a turn that kills its process repeatedly, and the turns beside it', () => {
      const verdict = judge(() => undefined, { maxLost: MAX_LOST }, culpritRun);
      expect(verdict).toMatchObject({
        violations: [],
        turnsByStatus: { failed: 1, 'awaiting-input': 4 },
        attempts: 14,
        crashes: 5,
        faults: 5,
      });
    });

    it('FIX-06 accepts an attempt that was lost before its process received the claim', () => {
      const { violations } = judge(
        (forgery) => {
          const [, { end }] = forgery.calls('claim', { sessionId: 'culprit' });
          const ofSecond = (note: { readonly process: string; readonly turnId: string }): boolean =>
            note.process === 'worker-1.2' && note.turnId === 'turn-1';
          forgery.remove(end, ...[...forgery.notes('begin'), ...forgery.notes('crash')].filter(ofSecond));
        },
        { maxLost: MAX_LOST },
        culpritRun,
      );
      expect(violations).toEqual([]);
    });

    forgeries(
      'losses',
      [
        [
          'FIX-06 detects that a turn failed because of losses although it kills no process',
          /turn-1 .* failed as WORKER_LOST; its message ends no process/,
          (forgery) => (forgery.turn('k1').request.input.metadata = { fails: true, crashAfterMs: null }),
        ],
        [
          'FIX-06 detects that a turn without a script failed because of losses',
          /turn-1 .* failed as WORKER_LOST; its message ends no process/,
          (forgery) => delete forgery.turn('k1').request.input.metadata,
        ],
        [
          'FIX-06 detects that a turn was lost too often',
          /turn-1 .* was lost 5 times and failed as WORKER_LOST; the limit is 4/,
          () => undefined,
          { maxLost: 4 },
        ],
        [
          'FIX-06 detects that a turn failed before the maximum number of losses',
          /turn-1 .* was lost 5 times and failed as WORKER_LOST; the limit is 6/,
          () => undefined,
          { maxLost: 6 },
        ],
        [
          'FIX-06 detects that a turn succeeded after too many losses',
          /turn-2 .* was lost 2 times and did not fail as WORKER_LOST; the limit is 2/,
          () => undefined,
          { maxLost: 2 },
        ],
        [
          'FIX-06 detects that a count of lost attempts decreases',
          /turn-2 .*: lost went back from 1 to 0, the claim/,
          (forgery) => countLost(forgery, 'one', 2, 0),
        ],
        [
          'FIX-06 detects that a stored count of lost attempts decreases',
          /turn-2 .*: lost went back from 2 to 1 in the store/,
          (forgery) => (forgery.turn('i1').lost = 1),
        ],
        [
          'FIX-06 detects that a claim does not count the previous lost attempt',
          /turn-5 .*: 0 attempts are counted as lost, 1 to 1 were before the claim/,
          (forgery) => countLost(forgery, 'three', 1, 0),
        ],
        [
          'FIX-06 detects that a claim counts an attempt as lost that was not lost',
          /turn-3 .*: 2 attempts are counted as lost, 1 to 1 were before the claim/,
          (forgery) => countLost(forgery, 'two', 1, 2),
        ],
        [
          'FIX-06 detects that a handler started whose attempt is not counted',
          /turn-1 .*: 4 attempts are counted as lost, 5 to 5 were/,
          (forgery) => (forgery.turn('k1').lost = 4),
          { maxLost: 4 },
        ],
        [
          'FIX-06 detects that a successful attempt is counted as lost',
          /turn-4 .*: 1 attempts are counted as lost, 0 to 0 were/,
          (forgery) => (forgery.turn('k2').lost = 1),
        ],
      ],
      culpritRun,
    );

    forgeries('losses', [
      [
        'FIX-06 detects that a failed attempt is counted as lost',
        /turn-1 .*: 1 attempts are counted as lost, 0 to 0 were/,
        (forgery) => (forgery.turn('a1').lost = 1),
      ],
    ]);
  });

  describe('suspects', () => {
    /** The first suspect runs until the second one has begun. */
    const overlap = (forgery: Forgery): { readonly endedAt: number; readonly attempt: string } => {
      const settle = forgery.call('settle', { sessionId: 'one' });
      const end = forgery.notes('end').find(({ turnId }) => turnId === 'turn-2');
      const begin = forgery.notes('begin').findLast(({ turnId }) => turnId === 'turn-3');
      if (!end || !begin) throw new Error('The run does not contain these entries.');
      const { at: endedAt, attempt } = end;
      for (const [index, entry] of [end, settle.sent, settle.end].entries()) entry.at = begin.at + 10 * (index + 1);
      return { endedAt, attempt };
    };

    forgeries(
      'suspects',
      [
        [
          'FIX-06 detects that two suspects run in one process at a time',
          /two suspects ran at a time: handler .* of turn turn-3, .* in worker-1.3 .* beside handler .* of turn turn-2/,
          overlap,
        ],
      ],
      culpritRun,
    );

    it('FIX-06 accepts suspects in two processes', () => {
      const { violations } = judge(
        (forgery) => {
          overlap(forgery);
          const calls = [
            ...forgery.calls('claim', { sessionId: 'two' }),
            ...forgery.calls('settle', { sessionId: 'two' }),
          ];
          const notes = [...forgery.notes('begin'), ...forgery.notes('end')].filter(
            ({ turnId }) => turnId === 'turn-3',
          );
          for (const entry of [...calls.flatMap(({ sent, end }) => [sent, end]), ...notes]) {
            const own = entry as { process: string };
            if (own.process === 'worker-1.3') own.process = 'worker-2.1';
          }
        },
        {},
        culpritRun,
      );
      expect(violations).toEqual([]);
    });

    it('FIX-06 accepts a suspect that begins while an aborted one still runs', () => {
      const { violations } = judge(
        (forgery) => {
          const { endedAt: at, attempt } = overlap(forgery);
          forgery.note({ at, process: 'worker-1.3', what: 'abort', turnId: 'turn-2', attempt });
        },
        {},
        culpritRun,
      );
      expect(violations).toEqual([]);
    });
  });

  describe('checkpoints', () => {
    const second = (forgery: Forgery) => forgery.session('retried').checkpoints[1];

    forgeries('checkpoints', [
      [
        'BOT-20 detects a gap',
        /checkpoint 2 of turn turn-2 is stored where 1/,
        (forgery) => (second(forgery).turnIndex = 2),
      ],
      [
        'BOT-20 detects a fork',
        /checkpoint 0 of turn turn-2 is stored where 1/,
        (forgery) => (second(forgery).turnIndex = 0),
      ],
      [
        'BOT-20 detects a wrong parent',
        /checkpoint 1 .* has the parent undefined/,
        (forgery) => delete second(forgery).parent,
      ],
      [
        'BOT-20 detects a checkpoint of a turn that failed',
        /checkpoint 1 of turn turn-6 belongs to no turn that succeeded/,
        (forgery) => {
          const { checkpoints } = forgery.session('stopped');
          checkpoints.push({ ...checkpoints[0], turnIndex: 1, parent: 0, turnId: 'turn-6' });
        },
      ],
      [
        'BOT-20 detects a turn without its checkpoint',
        /turn turn-2 .* without a checkpoint/,
        (forgery) => void forgery.session('retried').checkpoints.pop(),
      ],
      [
        'BOT-20 detects a state in which a turn is missing',
        /checkpoint 1 .* has the state/,
        (forgery) =>
          (second(forgery).state = {
            ...second(forgery).state,
            chain: forgery.session('retried').checkpoints[0].state.chain,
          }),
      ],
      [
        'BOT-20 detects a turn that is counted twice',
        /checkpoint 1 .* has the state/,
        (forgery) => (second(forgery).state = { ...second(forgery).state, turns: 3 }),
      ],
      [
        'TRN-02 detects checkpoints against the order of the lane',
        /checkpoint 0 of turn turn-2 is stored where that of turn turn-1/,
        (forgery) => {
          forgery.session('retried').checkpoints[0].turnId = 'turn-2';
          second(forgery).turnId = 'turn-1';
        },
      ],
      [
        'BOT-20 detects a turn with another index',
        /says that its index is 5/,
        (forgery) => (forgery.turn('a2').turnIndex = 5),
      ],
      [
        'BOT-20 detects a failed turn with an index',
        /turn turn-6, which is failed, has turn index 1/,
        (forgery) => (forgery.turn('b4').turnIndex = 1),
      ],
    ]);
  });

  describe('messages', () => {
    const say = (
      forgery: Forgery,
      sessionId: string,
      turnId: string,
      role: 'user' | 'assistant',
      content: string,
    ): void => {
      const { messages } = forgery.session(sessionId);
      const position = messages.length + 1;
      messages.push({ id: `forged.${position}`, position, role, content, turnId, createdAt: '' });
    };

    forgeries('messages', [
      [
        'TRN-15 detects that an answer is missing',
        /turn-2 .* left "user: a2" instead of/,
        (forgery) => void forgery.session('retried').messages.pop(),
      ],
      [
        'TRN-15 detects an answer that is there twice',
        /turn-2 .* left "user: a2", "assistant: .*", "assistant:/,
        (forgery) => say(forgery, 'retried', 'turn-2', 'assistant', String(forgery.turn('a2').reply?.text)),
      ],
      [
        'TRN-15 detects a message that is there twice',
        /message turn-1.0 .* is there twice/,
        (forgery) => (forgery.session('retried').messages[1].id = 'turn-1.0'),
      ],
      [
        'BOT-08 detects messages of a failed turn',
        /turn-6 .* left "user: b4"/,
        (forgery) => say(forgery, 'stopped', 'turn-6', 'user', 'b4'),
      ],
      [
        'TRN-06 detects messages of a superseded turn',
        /turn-4 .* left "user: b2"/,
        (forgery) => {
          say(forgery, 'stopped', 'turn-4', 'user', 'b2');
          swapMessages(forgery, 'stopped', 2, 3);
        },
      ],
      [
        'TRN-06 detects the reply of a cancelled turn',
        /turn-5 .* left "user: b3", "assistant: else"/,
        (forgery) => say(forgery, 'stopped', 'turn-5', 'assistant', 'else'),
      ],
      [
        'TRN-06 detects a message that was rolled back',
        /turn-5 .* left its message, but no call interrupted it/,
        (forgery) => (forgery.call('submit', { key: 'b4' }).sent.args.whenBusy = 'rollback'),
      ],
      [
        'TRN-06 detects that the message of an interrupted turn is missing',
        /turn-5 .* was interrupted while it ran, but left no message/,
        (forgery) => void forgery.session('stopped').messages.pop(),
      ],
      [
        'STA-03 detects a gap',
        /at 5, of turn turn-2, is stored where 4/,
        (forgery) => (forgery.session('retried').messages[3].position = 5),
      ],
      [
        'TRN-02 detects messages against the order of the lane',
        /of turn turn-1 \(position 1\), comes after those of position 2/,
        (forgery) => {
          swapMessages(forgery, 'retried', 0, 2);
          swapMessages(forgery, 'retried', 1, 3);
        },
      ],
      [
        'STA-03 detects a message without a turn',
        /of turn turn-77, belongs to no turn/,
        (forgery) => say(forgery, 'stopped', 'turn-77', 'user', 'b7'),
      ],
      [
        'TRN-15 detects a reply that no handler returned',
        /has the answer "a2 worker-9\/1", which no handler/,
        (forgery) => {
          const text = 'a2 worker-9/1';
          forgery.turn('a2').reply = { text };
          forgery.session('retried').messages[3].content = text;
          forgery.call('settle', { turnId: 'turn-2' }).sent.args.text = text;
        },
      ],
    ]);
  });

  describe('steps', () => {
    const effect = (forgery: Forgery, attempt: string, step: string): void => {
      const begin = forgery.notes('begin').find((note) => note.attempt === attempt);
      const end = forgery.notes('end').find((note) => note.attempt === attempt);
      const at = (end?.at ?? forgery.notes('fault')[0].at) - 1;
      forgery.note({
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
        'BOT-30 detects that a later attempt repeats a stored step',
        /turn-1 .*: step look up was done .* worker-1\/2 .* after saveStep .* fence 1/,
        (forgery) => effect(forgery, 'worker-1/2', 'look up'),
      ],
      [
        'BOT-30 detects that an attempt repeats its own stored step',
        /turn-2 .*: step look up was done .* worker-1\/3 .* after saveStep/,
        (forgery) => effect(forgery, 'worker-1/3', 'look up'),
      ],
      [
        'ORC-28 detects that a later attempt repeats a stored tool call',
        /turn-1 .*: step tool turn-1-0 was done .* worker-1\/2 .* after saveStep .* fence 1/,
        (forgery) => effect(forgery, 'worker-1/2', 'tool turn-1-0'),
      ],
      [
        'BOT-30 detects a step with two values',
        /step look up is "worker-1\/1" after .*, and "else" after/,
        (forgery) => {
          const { end } = forgery.call('claim', { sessionId: 'retried' }, 1);
          const { sessionId, turnId, fence } = claimOf({ end });
          const save = { sessionId, turnId, fence, step: 'look up', value: 'else' };
          forgery.add(end.at + 10, 'worker-1', 'saveStep', save, { value: 'else' });
        },
      ],
      [
        'BOT-30 detects that a claim lacks a stored step',
        /step look up is missing from the claim of turn turn-2/,
        (forgery) => Object.assign(claimOf(forgery.call('claim', { sessionId: 'retried' }, 2)), { steps: [] }),
      ],
      [
        'BOT-30 detects a stored step that no attempt has stored',
        /no attempt stored step ghost/,
        (forgery) => Object.assign(claimOf(forgery.call('claim', { sessionId: 'frozen' })), { steps: ['ghost'] }),
      ],
      [
        'BOT-30 detects a step of a handler that never began',
        /by a handler that never began/,
        (forgery) => effect(forgery, 'worker-1/99', 'look up'),
      ],
    ]);
  });

  describe('tools', () => {
    type State = NonNullable<ReturnType<Forgery['session']>['orchestration']>;
    const state = (forgery: Forgery): State => forgery.session('retried').orchestration!;
    const told = (attempt: string, tokens: number) => (forgery: Forgery) => {
      for (const begin of forgery.notes('begin')) if (begin.attempt === attempt) begin.tokens = tokens;
    };

    forgeries('tools', [
      [
        'ORC-28 detects that a use is lost',
        /session retried has the state/,
        (forgery) => void state(forgery).toolHistory.pop(),
      ],
      [
        'ORC-28 detects a use that is there twice',
        /session retried has the state .*turn-2-0: ask in recover","turn-2-0: ask in recover"\]/,
        (forgery) => void state(forgery).toolHistory.push({ ...state(forgery).toolHistory[2] }),
      ],
      [
        'ORC-28 detects a use of a turn that failed',
        /session retried has the state .*turn-6-0/,
        (forgery) => void state(forgery).toolHistory.push({ ...state(forgery).toolHistory[2], callId: 'turn-6-0' }),
      ],
      [
        'ORC-28 detects tool uses if all turns failed',
        /session stopped has the state .*turn-6-0.* instead of .*"toolHistory":\[\]/,
        (forgery) => {
          const failed = { ...state(forgery).toolHistory[2], callId: 'turn-6-0' };
          forgery.session('stopped').orchestration!.toolHistory.push(failed);
        },
      ],
      [
        'ORC-28 detects that all uses are lost',
        /session retried has the state null instead of/,
        (forgery) => (forgery.session('retried').orchestration = null),
      ],
      [
        'TRN-02 detects uses against the order of the lane',
        /session retried has the state/,
        (forgery) => void state(forgery).toolHistory.reverse(),
      ],
      [
        'ORC-28 detects a failed use that is recorded as successful',
        /look in collect, failed"/,
        (forgery) => (state(forgery).toolHistory[0].outcome = 'failed'),
      ],
      [
        'ORC-11 detects tokens that were added twice',
        /"totalTokens":134} instead of .*"totalTokens":94}/,
        (forgery) => (state(forgery).cumulativeTokenUsage.totalTokens += 40),
      ],
      ['ORC-25 detects another active step', /"activeStep":"act"/, (forgery) => (state(forgery).activeStep = 'act')],
      [
        'ORC-21 detects a wrong position in the sequence',
        /"sequenceIndex":2/,
        (forgery) => (state(forgery).sequenceIndex = 2),
      ],
      [
        'ORC-01 detects wrong recent tools',
        /"recentlyUsedTools":\["look"\]/,
        (forgery) => (state(forgery).recentlyUsedTools = ['look']),
      ],
      [
        'ORC-30 detects a handler without the state of the previous turn',
        /worker-2\/4 of turn turn-2, .* received 24 tokens; 54 had been used/,
        told('worker-2/4', 24),
      ],
      [
        'ORC-30 FIX-15 detects a handler with more tokens than an earlier attempt of its turn used',
        /worker-1\/2 of turn turn-1, .* received 35 tokens; 24 had been used/,
        told('worker-1/2', 35),
      ],
    ]);
  });

  describe('events', () => {
    const stored = (forgery: Forgery) =>
      forgery.session('retried').events['turn-1'] as { offset: number; type: string; data: null }[];
    const given = (forgery: Forgery, offset: number, name: string, at = 9_000_000): void =>
      forgery.note({ at, process: 'client-1', what: 'event', turnId: 'turn-1', reader: 'reader-2', offset, name });

    forgeries('events', [
      ['TRN-30 detects a gap', /stored event 3 is stored where 2/, (forgery) => void stored(forgery).splice(1, 1)],
      [
        'TRN-30 detects that a confirmed event is lost',
        /events up to 4 were stored by append .*, but there are 3/,
        (forgery) => void stored(forgery).pop(),
      ],
      [
        'TRN-30 detects two batches at one position',
        /1 events up to 2 by append .* overlap those up to 2/,
        (forgery) => (forgery.call('append', { fence: 2 }).end.value.last = 2),
      ],
      [
        'TRN-30 detects a batch that is there twice',
        /4 events are stored, but 3 were sent/,
        (forgery) => stored(forgery).push({ offset: 5, type: 'piece', data: null }),
      ],
      [
        'TRN-32 detects a mark of an attempt that did not exist',
        /2 times another attempt is marked, but 2 claims/,
        (forgery) => (stored(forgery)[3].type = 'attempt'),
      ],
      [
        'TRN-32 detects that a reader missed an event',
        /reader reader-1 received event 3 .* after event 1/,
        (forgery) => forgery.remove(forgery.notes('event')[1]),
      ],
      [
        'TRN-32 detects that a reader missed the first events',
        /reader reader-2 received event 3 first/,
        (forgery) => given(forgery, 3, 'attempt'),
      ],
      [
        'TRN-32 detects that a reader received an event twice',
        /reader reader-2 received event 1 .* after event 1/,
        (forgery) => {
          given(forgery, 1, 'piece');
          given(forgery, 1, 'piece');
        },
      ],
      [
        'AIS-07 detects a wait that is not at the last event that the reader received',
        /received event 2 \(waiting\) .* after event 1/,
        (forgery) => {
          given(forgery, 1, 'piece');
          given(forgery, 2, 'waiting');
        },
      ],
      [
        'TRN-32 detects that a reader received a different event than the stored one',
        /received event 2 \(attempt\) .* but stored is piece/,
        (forgery) => (forgery.notes('event')[1].name = 'attempt'),
      ],
      [
        'TRN-30 detects that a reader received an event that is not stored',
        /received event 5 \(piece\) .* but stored is nothing/,
        (forgery) => given(forgery, 5, 'piece'),
      ],
      [
        'TRN-30 detects an event after the end',
        /received event 6 \(piece\) .* after the end/,
        (forgery) => {
          given(forgery, 5, 'settled');
          given(forgery, 6, 'piece');
        },
      ],
      [
        'TRN-30 detects an end that omits events',
        /received event 3 \(settled\) .* but 4 are stored/,
        (forgery) => given(forgery, 3, 'settled'),
      ],
      [
        'TRN-30 detects an end that is too early',
        /received event 5 \(settled\) .* before the turn can have ended/,
        (forgery) => given(forgery, 5, 'settled', forgery.call('settle', { turnId: 'turn-1' }).sent.at - 10),
      ],
    ]);
  });

  describe('scripts', () => {
    const USED = [
      { tool: 'look', tokens: 10, fails: false },
      { tool: 'drop', tokens: 20, fails: false },
    ];
    const AS_IT_WAS = { steps: 1, emits: 1, failures: 1, fails: false, tools: USED };
    const record = (forgery: Forgery, key: string, script: object): void => {
      forgery.turn(key).request.input.metadata = { ...AS_IT_WAS, ...script };
    };

    forgeries('scripts', [
      [
        'TRN-11 detects that a turn failed that should succeed',
        /turn-6 .* was not to fail/,
        (forgery) => record(forgery, 'b4', {}),
      ],
      [
        'TRN-11 detects a reply of a turn that should fail',
        /was to fail/,
        (forgery) => record(forgery, 'a1', { fails: true }),
      ],
      [
        'FIX-06 detects a reply of a turn that should kill its process',
        /turn-1 .* was to end each process that ran it/,
        (forgery) => record(forgery, 'a1', { crashAfterMs: 0 }),
      ],
      [
        'FIX-06 detects another failure of a turn that should kill its process',
        /turn-6 .* was not to fail/,
        (forgery) => record(forgery, 'b4', { crashAfterMs: 0 }),
      ],
      [
        'TRN-11 detects that an attempt succeeded that should fail',
        /1 attempts failed or were lost; 2 were to fail/,
        (forgery) => record(forgery, 'a1', { failures: 2 }),
      ],
      [
        'BOT-30 detects an answer without a step',
        /ended with 2 stored steps; 3 were to be/,
        (forgery) => record(forgery, 'a1', { steps: 3 }),
      ],
      [
        'ORC-28 detects an answer without a use of a tool',
        /turn-1 .* used .*"drop".*; .*"ask".* were to be/,
        (forgery) => record(forgery, 'a1', { tools: [...USED, { tool: 'ask', tokens: 1, fails: false }] }),
      ],
      [
        'TRN-30 detects that an event was never sent to the store',
        /1 events were stored with fence 2; 2 were to be/,
        (forgery) => record(forgery, 'a1', { emits: 2 }),
      ],
    ]);

    it('TRN-30 accepts turns that followed their scripts', () => {
      const { violations } = judge((forgery) => {
        record(forgery, 'a1', {});
        record(forgery, 'b4', { fails: true });
        record(forgery, 'b5', {});
      });
      expect(violations).toEqual([]);
    });

    it('TRN-30 accepts events that could not be stored', () => {
      const { violations } = judge((forgery) => {
        record(forgery, 'a1', { emits: 4 });
        const batch = { ...forgery.call('append', { fence: 2 }).sent.args, number: 2, count: 3 };
        forgery.add(forgery.call('settle', { turnId: 'turn-1' }).sent.at - 10, 'worker-1', 'append', batch);
      });
      expect(violations).toEqual([]);
    });
  });

  describe('signals', () => {
    forgeries('signals', [
      [
        'TRN-13 detects that two signals were applied',
        /two count/,
        (forgery) => (forgery.call('signal', {}, 1).end.value.accepted = true),
      ],
      [
        'TRN-13 detects that the first signal was not applied',
        /signal by client-1 .* another one was first, but none was/,
        (forgery) => (forgery.call('signal', {}).end.value.accepted = false),
      ],
    ]);
  });

  describe('idle', () => {
    forgeries('idle', [
      ['TRN-21 detects remaining jobs', /left over: 1 job/, (forgery) => void forgery.contents.leftovers.push('1 job')],
      [
        'TRN-15 detects a lane that still has a head',
        /the lane has a head, turn turn-7/,
        (forgery) => (forgery.session('stopped').lane.head = forgery.turn('b5')),
      ],
      ['TRN-15 detects queued turns', /has 2 queued turns/, (forgery) => (forgery.session('stopped').lane.queued = 2)],
      [
        'TRN-11 detects a lane that is not open',
        /the lane is paused/,
        (forgery) => (forgery.session('stopped').lane.mode = 'paused'),
      ],
    ]);
  });

  describe('progress', () => {
    const pause = (forgery: Forgery): number => {
      const { at } = forgery.call('retry', {}).end;
      forgery.delayFrom(at + 10, 20_000_000);
      return at;
    };

    forgeries('progress', [
      [
        'TRN-15 detects a lane that is stuck',
        /session retried stood still for 20100 ms/,
        (forgery) => void pause(forgery),
      ],
      [
        'TRN-13 detects a lane that is stuck although its signal has arrived',
        /session stopped stood still for 20001 ms/,
        (forgery) => forgery.delayFrom(forgery.call('claim', { sessionId: 'stopped' }, 1).sent.at, 20_000_000),
      ],
      [
        'TRN-15 detects every stall longer than the limit',
        /session retried stood still for 2001 ms/,
        () => undefined,
        { stallMs: 2000 },
      ],
    ]);

    it('TRN-15 detects a turn that no worker continues until the end', () => {
      const { violations } = judge((forgery) => {
        const [first, ...rest] = forgery.calls('settle', { sessionId: 'frozen' });
        forgery.remove(...[first, ...rest].flatMap(({ sent, end }) => [sent, end]));
        forgery.turn('c1').status = 'running';
        forgery.notes('fault')[3].at += 20_000_000;
      });
      expect(new Set(violations.map(({ rule }) => rule))).toEqual(
        new Set(['settled once', 'checkpoints', 'messages', 'progress']),
      );
    });

    it('TRN-15 does not blame a lane for an outage', () => {
      const { violations, longestStallMs } = judge((forgery) => {
        const at = pause(forgery);
        forgery.note({ at: at + 10, process: 'driver', what: 'outage' });
        forgery.note({ at: at + 19_000_010, process: 'driver', what: 'recovered' });
      });
      expect(violations).toEqual([]);
      expect(longestStallMs).toBe(2001);
    });
  });

  describe('a broken history', () => {
    it.each<readonly [string, RegExp, (forgery: Forgery) => void]>([
      [
        'an answer to nothing',
        /ends without having begun/,
        (forgery) => forgery.remove(forgery.call('retry', {}).sent),
      ],
      ['two answers to one call', /ends twice/, (forgery) => void forgery.entries.push({ ...forgery.entries[1] })],
      ['an answer before its call', /ends before it begins/, (forgery) => (forgery.call('retry', {}).end.at = 0)],
      ['two handlers of one name', /Two handlers/, (forgery) => (forgery.notes('begin')[1].attempt = 'worker-1/1')],
    ])('TRN-15 is refused: %s', (_, message, edit) => {
      expect(() => judge(edit)).toThrow(message);
    });
  });
});

/** A lane of its own with two turns that failed, as soon as somebody runs them: between 100,000 and 110,000. */
function addLane(forgery: Forgery): void {
  const sessionId = 'forged';
  const failed = (id: string, position: number) => ({
    ...forgery.turn('b4'),
    id,
    position,
    sessionId,
    idempotencyKey: id,
    request: { input: { text: id } },
  });
  forgery.contents.sessions.push({
    ...forgery.session('stopped'),
    sessionId,
    turns: [failed('x1', 1), failed('x2', 2)],
    messages: [],
    checkpoints: [],
    events: {},
  });
  for (const [index, key] of ['x1', 'x2'].entries()) {
    const value = { turnId: key, position: index + 1 };
    forgery.add(100_000 + index * 100, 'client-1', 'submit', { sessionId, key, whenBusy: 'enqueue' }, value);
  }
}

function addRun(forgery: Forgery, turnId: string, position: number, fence: number, after: number): void {
  const held = { sessionId: 'forged', turnId, fence };
  const at = 100_000 + after;
  forgery.add(at, 'worker-2', 'claim', { sessionId: 'forged' }, { ...held, position, failures: 0, lost: 0, steps: [] });
  forgery.add(at + 100, 'worker-2', 'settle', { ...held, status: 'failed', text: null }, { next: null });
}

/** Another handler for the last turn of the forgery, after the last one has ended. */
function addHandler(forgery: Forgery, { number }: { readonly number: number }): void {
  const [{ at, turnId }] = forgery.notes('end').slice(-1);
  const handler = { process: 'worker-2', turnId, attempt: 'worker-2/99' };
  forgery.note({ at: at + 1, what: 'begin', sessionId: 'frozen', number, tokens: 24, ...handler });
  forgery.note({ at: at + 2, what: 'end', ...handler });
}

/** Changes the count of lost attempts in a claim of a session, and the number of its handler's attempt. */
function countLost(forgery: Forgery, sessionId: string, index: number, lost: number): void {
  const { sent, end } = forgery.call('claim', { sessionId }, index);
  const claim = claimOf({ end }) as { lost: number; readonly turnId: string };
  claim.lost = lost;
  const begin = forgery
    .notes('begin')
    .find(({ turnId, process }) => turnId === claim.turnId && process === sent.process);
  if (begin) begin.number = lost + 1;
}

function swapMessages(forgery: Forgery, sessionId: string, one: number, other: number): void {
  const { messages } = forgery.session(sessionId);
  [messages[one], messages[other]] = [messages[other], messages[one]];
  for (const [index, message] of messages.entries()) message.position = index + 1;
}
