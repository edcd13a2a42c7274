import fc from 'fast-check';
import { type Claim } from '../history/history.js';
import { checkHistory, type RuleName } from './check-history.js';
import { Forgery } from './simulation/forgery.js';
import { runAtRandom } from './simulation/random-run.js';

const LIMITS = { leaseMs: 2000 };

/** Simulates a bug. @returns false if the run has nothing to which it applies */
type Bug = (forgery: Forgery) => boolean;

const BUGS: readonly (readonly [title: string, rule: RuleName, bug: Bug])[] = [
  ['TRN-15 a turn is lost', 'accepted', (forgery) => forgery.contents.sessions.some(({ turns }) => turns.pop())],
  [
    'TRN-15 a turn ends without a settle',
    'settled once',
    (forgery) => {
      const settled = turnsOf(forgery).find(({ status }) => status === 'awaiting-input');
      if (!settled) return false;
      for (const { sent, end } of forgery.calls('settle', { turnId: settled.id })) forgery.remove(sent, end ?? {});
      return true;
    },
  ],
  [
    'TRN-02 two turns swap positions',
    'order',
    (forgery) => {
      for (const { turns } of forgery.contents.sessions) {
        if (turns.length < 2) continue;
        const [first] = turns;
        const last = turns[turns.length - 1];
        [first.position, last.position] = [last.position, first.position];
        [turns[0], turns[turns.length - 1]] = [last, first];
        return true;
      }
      return false;
    },
  ],
  [
    'TRN-03 two claims have swapped fences',
    'fences',
    (forgery) => {
      const [first, second] = forgery
        .calls('claim', { sessionId: 's1' })
        .flatMap(({ end }) => (end?.value as Claim) ?? []);
      if (!first || !second) return false;
      const [one, other] = [first, second] as { fence: number }[];
      [one.fence, other.fence] = [other.fence, one.fence];
      return true;
    },
  ],
  [
    'FIX-06 a lost attempt is not counted',
    'losses',
    (forgery) => {
      const claims = forgery.calls('claim', {}).flatMap(({ end }) => (end?.value as Claim | undefined) ?? []);
      const isClaimed = ({ id, lost }: { id: string; lost: number }): boolean =>
        claims.some((claim) => claim.turnId === id && claim.lost === lost);
      const turn = turnsOf(forgery).find((one) => one.lost > 0 && isClaimed(one));
      if (turn) turn.lost -= 1;
      return turn !== undefined;
    },
  ],
  [
    'FIX-06 more attempts are counted as lost than existed',
    'losses',
    (forgery) => {
      const [turn] = turnsOf(forgery);
      turn.lost += forgery.entries.length;
      return true;
    },
  ],
  [
    'FIX-06 a turn fails because of losses although it kills no process',
    'losses',
    (forgery) => {
      const failed = turnsOf(forgery).find(({ status }) => status === 'failed');
      if (failed) failed.error = { name: 'WorkerLostError', code: 'WORKER_LOST', message: '' };
      return failed !== undefined;
    },
  ],
  [
    'BOT-20 a checkpoint exists twice',
    'checkpoints',
    (forgery) =>
      forgery.contents.sessions.some(({ checkpoints }) => {
        const last = checkpoints.at(-1);
        if (last) checkpoints.push({ ...last });
        return last !== undefined;
      }),
  ],
  [
    'TRN-15 a message is lost',
    'messages',
    (forgery) => forgery.contents.sessions.some(({ messages }) => messages.length > 1 && messages.shift()),
  ],
  [
    'BOT-30 a stored step is repeated',
    'steps',
    (forgery) => {
      const saved = forgery
        .calls('saveStep', {})
        .find(({ sent, end }) => end?.type === 'ok' && sent.args.value === end.value.value);
      if (!saved) return false;
      const { turnId, step, value: attempt } = saved.sent.args;
      forgery.note({ at: saved.end.at + 1, process: saved.sent.process, what: 'step', turnId, step, attempt });
      return true;
    },
  ],
  [
    'ORC-28 the tool uses of a turn are lost',
    'tools',
    (forgery) => forgery.contents.sessions.some(({ orchestration }) => orchestration?.toolHistory.pop()),
  ],
  [
    'ORC-28 the tool uses of a turn are counted twice',
    'tools',
    (forgery) =>
      forgery.contents.sessions.some(({ orchestration }) => {
        const last = orchestration?.toolHistory.at(-1);
        if (last) orchestration?.toolHistory.push({ ...last });
        return last !== undefined;
      }),
  ],
  [
    'ORC-30 a handler receives an old state',
    'tools',
    (forgery) => {
      const begin = forgery.notes('begin').find(({ tokens }) => tokens > 24);
      if (begin) begin.tokens = 24;
      return begin !== undefined;
    },
  ],
  [
    'TRN-30 an event is lost',
    'events',
    (forgery) => {
      const append = forgery.calls('append', {}).find(({ end }) => end?.type === 'ok');
      if (!append) return false;
      const { sessionId, turnId } = append.sent.args;
      (forgery.session(sessionId).events[turnId] as unknown[]).splice(append.end.value.last - 1);
      return true;
    },
  ],
  [
    'TRN-13 two signals are applied',
    'signals',
    (forgery) => {
      const signals = forgery.calls('signal', {}).filter(({ end }) => end?.type === 'ok');
      const second = signals.find(
        ({ sent, end }) =>
          !end.value.accepted &&
          signals.some((first) => first.end.value.accepted && first.sent.args.turnId === sent.args.turnId),
      );
      if (second) second.end.value.accepted = true;
      return second !== undefined;
    },
  ],
];

describe('checkHistory with random histories', () => {
  it('TRN-15 accepts every run of a correct store', () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const { entries, contents } = runAtRandom(seed);
        expect(checkHistory(entries, contents, LIMITS).violations).toEqual([]);
      }),
    );
  });

  it.each(BUGS)('detects: %s', (_, rule, bug) => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const forgery = new Forgery(runAtRandom(seed));
        fc.pre(bug(forgery));
        const { violations } = checkHistory(forgery.entries, forgery.contents, LIMITS);
        expect(violations.map((violation) => violation.rule)).toContain(rule);
      }),
      { numRuns: 30 },
    );
  });
});

function turnsOf(forgery: Forgery): Forgery['contents']['sessions'][number]['turns'] {
  return forgery.contents.sessions.flatMap(({ turns }) => turns);
}
