import { type OrchestrationProgress } from 'nestjs-agent-sessions';
import { ReferencePlan } from '../../../orchestration/reference.js';
import { stepsOf, TOKENS_BEFORE } from '../../actor/plan.js';
import { answerUses } from '../answer-uses.js';
import { show } from '../describe.js';
import { type Run, type SessionRun, type UseNote } from '../run.js';
import { isSuccessful } from './checkpoints.js';

/** How many uses are remembered. */
const REMEMBERED = 100;

/**
 * What a turn does with tools is stored once, with its success, and nothing of other turns; a handler is told what all
 * successful turns before its own have done (ORC-11, ORC-28, ORC-30). That stored calls are not made again is a matter of steps.
 */
export function* tools(run: Run): Generator<string> {
  for (const session of run.sessions) {
    if (session.contents) yield* ofSession(session, session.contents.orchestration);
  }
}

function* ofSession({ sessionId, turns }: SessionRun, stored: OrchestrationProgress | null): Generator<string> {
  const done: UseNote[] = [];
  let tokens = TOKENS_BEFORE;
  for (const turn of turns) {
    const misled = turn.attempts.find((attempt) => attempt.grant && attempt.tokens !== tokens);
    if (misled) yield `${show.attempt(misled)} was told of ${misled.tokens} tokens; ${tokens} had been taken`;
    if (!turn.stored || !isSuccessful(turn.stored)) continue;
    const uses = answerUses(turn);
    // What comes of an answer that nobody gave cannot be known.
    if (!uses) return;
    done.push(...uses);
    tokens += uses.reduce((sum, use) => sum + use.tokens, 0);
  }
  const expected = JSON.stringify(stateAfter(done, tokens));
  const found = JSON.stringify(stored && known(stored));
  if (found !== expected) yield `session ${sessionId} has the state ${found} instead of ${expected}`;
}

function stateAfter(uses: readonly UseNote[], totalTokens: number): object {
  const plan = new ReferencePlan(stepsOf(''));
  for (const use of uses) plan.use(use);
  const { history, ...state } = plan.state;
  const toolHistory = history.map(({ tool, step, failed }, index) => toUse(tool, step, uses[index].callId, failed));
  return { ...state, toolHistory: toolHistory.slice(-REMEMBERED), totalTokens };
}

function known(stored: OrchestrationProgress): object {
  const { activeStep, sequenceIndex, recentlyUsedTools, cumulativeTokenUsage } = stored;
  const toolHistory = stored.toolHistory.map(({ tool, step, callId, outcome }) =>
    toUse(tool, step, callId, outcome === 'failed'),
  );
  return { activeStep, sequenceIndex, recentlyUsedTools, toolHistory, totalTokens: cumulativeTokenUsage.totalTokens };
}

function toUse(tool: string, step: string | undefined, callId: string | undefined, failed: boolean): string {
  return `${callId}: ${tool} in ${step}${failed ? ', failed' : ''}`;
}
