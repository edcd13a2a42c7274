import fc from 'fast-check';
import { type Claim } from '../history/history.js';
import { checkHistory, type RuleName } from './check-history.js';
import { Forgery } from './simulation/forgery.js';
import { runAtRandom } from './simulation/random-run.js';

const LIMITS = { leaseMs: 2000 };

/** Does what a bug would do. @returns whether there was something to do it to */
type Bug = (story: Forgery) => boolean;

const BUGS: readonly (readonly [title: string, rule: RuleName, bug: Bug])[] = [
  ['TRN-15 a turn is lost', 'accepted', (story) => story.contents.sessions.some(({ turns }) => turns.pop())],
  [
    'TRN-15 a turn ends that nobody settled',
    'settled once',
    (story) => {
      const settled = turnsOf(story).find(({ status }) => status === 'awaiting-input');
      if (!settled) return false;
      for (const { sent, end } of story.calls('settle', { turnId: settled.id })) story.remove(sent, end ?? {});
      return true;
    },
  ],
  [
    'TRN-02 two turns change places',
    'order',
    (story) => {
      for (const { turns } of story.contents.sessions) {
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
    'TRN-03 two claims have changed fences',
    'fences',
    (story) => {
      const [first, second] = story
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
    (story) => {
      const claims = story.calls('claim', {}).flatMap(({ end }) => (end?.value as Claim | undefined) ?? []);
      const isClaimed = ({ id, lost }: { id: string; lost: number }): boolean =>
        claims.some((claim) => claim.turnId === id && claim.lost === lost);
      const turn = turnsOf(story).find((one) => one.lost > 0 && isClaimed(one));
      if (turn) turn.lost -= 1;
      return turn !== undefined;
    },
  ],
  [
    'FIX-06 more attempts are counted as lost than were made',
    'losses',
    (story) => {
      const [turn] = turnsOf(story);
      turn.lost += story.entries.length;
      return true;
    },
  ],
  [
    'FIX-06 a turn fails because it was lost, which ends no process',
    'losses',
    (story) => {
      const failed = turnsOf(story).find(({ status }) => status === 'failed');
      if (failed) failed.error = { name: 'WorkerLostError', code: 'WORKER_LOST', message: '' };
      return failed !== undefined;
    },
  ],
  [
    'BOT-20 a checkpoint is there twice',
    'checkpoints',
    (story) =>
      story.contents.sessions.some(({ checkpoints }) => {
        const last = checkpoints.at(-1);
        if (last) checkpoints.push({ ...last });
        return last !== undefined;
      }),
  ],
  [
    'TRN-15 a message is lost',
    'messages',
    (story) => story.contents.sessions.some(({ messages }) => messages.length > 1 && messages.shift()),
  ],
  [
    'BOT-30 a stored step is done again',
    'steps',
    (story) => {
      const saved = story
        .calls('saveStep', {})
        .find(({ sent, end }) => end?.type === 'ok' && sent.args.value === end.value.value);
      if (!saved) return false;
      const { turnId, step, value: attempt } = saved.sent.args;
      story.note({ at: saved.end.at + 1, process: saved.sent.process, what: 'step', turnId, step, attempt });
      return true;
    },
  ],
  [
    'ORC-28 what a turn did with tools is lost',
    'tools',
    (story) => story.contents.sessions.some(({ orchestration }) => orchestration?.toolHistory.pop()),
  ],
  [
    'ORC-28 what a turn did with tools counts twice',
    'tools',
    (story) =>
      story.contents.sessions.some(({ orchestration }) => {
        const last = orchestration?.toolHistory.at(-1);
        if (last) orchestration?.toolHistory.push({ ...last });
        return last !== undefined;
      }),
  ],
  [
    'ORC-30 a handler is told an old state',
    'tools',
    (story) => {
      const begin = story.notes('begin').find(({ tokens }) => tokens > 24);
      if (begin) begin.tokens = 24;
      return begin !== undefined;
    },
  ],
  [
    'TRN-30 an event is lost',
    'events',
    (story) => {
      const append = story.calls('append', {}).find(({ end }) => end?.type === 'ok');
      if (!append) return false;
      const { sessionId, turnId } = append.sent.args;
      (story.session(sessionId).events[turnId] as unknown[]).splice(append.end.value.last - 1);
      return true;
    },
  ],
  [
    'TRN-13 two signals count',
    'signals',
    (story) => {
      const signals = story.calls('signal', {}).filter(({ end }) => end?.type === 'ok');
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

describe('checkHistory, of histories at random', () => {
  it('TRN-15 never finds anything wrong with what a correct store does', () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const { entries, contents } = runAtRandom(seed);
        expect(checkHistory(entries, contents, LIMITS).violations).toEqual([]);
      }),
    );
  });

  it.each(BUGS)('%s: that is seen', (_, rule, bug) => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const story = new Forgery(runAtRandom(seed));
        fc.pre(bug(story));
        const { violations } = checkHistory(story.entries, story.contents, LIMITS);
        expect(violations.map((violation) => violation.rule)).toContain(rule);
      }),
      { numRuns: 30 },
    );
  });
});

function turnsOf(story: Forgery): Forgery['contents']['sessions'][number]['turns'] {
  return story.contents.sessions.flatMap(({ turns }) => turns);
}
