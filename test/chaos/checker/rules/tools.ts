import { type StepPredicateContext } from 'nestjs-agent-sessions';
import { ReferencePlan } from '../../../orchestration/reference.js';
import { stepsOf, TOKENS_BEFORE } from '../../actor/plan.js';
import { answerUses } from '../answer-uses.js';
import { show } from '../describe.js';
import { type Run, type SessionRun, type UseNote } from '../run.js';
import { isSuccessful } from './checkpoints.js';

type Progress = StepPredicateContext['state'];

/** Number of remembered uses. */
const REMEMBERED = 100;

/**
 * The tool uses of a turn are stored once, when it succeeds, and those of other turns are not. A handler sees the uses of
 * all earlier successful turns (ORC-11, ORC-28, ORC-30). The rule of steps checks that stored calls are not repeated.
 * Recorded tokens of unsuccessful attempts count too, at most once for a stored call (FIX-15).
 */
export function* tools(run: Run): Generator<string> {
  for (const session of run.sessions) {
    if (session.contents) yield* ofSession(session, session.contents.orchestration);
  }
}

function* ofSession({ sessionId, turns }: SessionRun, stored: Progress | null): Generator<string> {
  const done: UseNote[] = [];
  let [least, most] = [TOKENS_BEFORE, TOKENS_BEFORE];
  for (const turn of turns) {
    const granted = turn.attempts.flatMap((attempt) => (attempt.grant ? { ...attempt, grant: attempt.grant } : []));
    const misled = granted.find((attempt) => {
      const earlier = granted.filter(({ grant }) => grant.fence < attempt.grant.fence).map((each) => each.attempt);
      const atMost = most + mostTokens(turn.uses.filter((use) => earlier.includes(use.attempt)));
      return attempt.tokens < least || attempt.tokens > atMost;
    });
    if (misled) yield `${show.attempt(misled)} received ${misled.tokens} tokens; ${least} had been used`;
    most += mostTokens(turn.uses);
    if (!turn.stored || !isSuccessful(turn.stored)) continue;
    const uses = answerUses(turn);
    // Without the handler of the reply, the result is unknown.
    if (!uses) return;
    done.push(...uses);
    least += uses.reduce((sum, use) => sum + use.tokens, 0);
  }
  const taken = stored?.cumulativeTokenUsage.totalTokens ?? 0;
  const expected = JSON.stringify(stateAfter(done, taken >= least && taken <= most ? taken : least));
  const found = JSON.stringify(stored && known(stored));
  if (found !== expected) yield `session ${sessionId} has the state ${found} instead of ${expected}`;
}

/** The next attempt repeats a failed call, and its tokens count again. */
function mostTokens(uses: readonly UseNote[]): number {
  const stored = new Map(uses.filter(({ failed }) => !failed).map(({ callId, tokens }) => [callId, tokens]));
  const repeated = uses.filter(({ failed }) => failed).map(({ tokens }) => tokens);
  return [...stored.values(), ...repeated].reduce((sum, tokens) => sum + tokens, 0);
}

function stateAfter(uses: readonly UseNote[], totalTokens: number): object {
  const plan = new ReferencePlan(stepsOf(''));
  for (const use of uses) plan.use(use);
  const { history, ...state } = plan.state;
  const toolHistory = history.map(({ tool, step, failed }, index) => toUse(tool, step, uses[index].callId, failed));
  return { ...state, toolHistory: toolHistory.slice(-REMEMBERED), totalTokens };
}

function known(stored: Progress): object {
  const { activeStep, sequenceIndex, recentlyUsedTools, cumulativeTokenUsage } = stored;
  const toolHistory = stored.toolHistory.map(({ tool, step, callId, outcome }) =>
    toUse(tool, step, callId, outcome === 'failed'),
  );
  return { activeStep, sequenceIndex, recentlyUsedTools, toolHistory, totalTokens: cumulativeTokenUsage.totalTokens };
}

function toUse(tool: string, step: string | undefined, callId: string | undefined, failed: boolean): string {
  return `${callId}: ${tool} in ${step}${failed ? ', failed' : ''}`;
}
