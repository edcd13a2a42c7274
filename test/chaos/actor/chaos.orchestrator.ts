import { setTimeout as delay } from 'node:timers/promises';
import {
  defineOrchestrator,
  type OrchestratorDefinition,
  reply,
  type TurnContext,
  type TurnOutcome,
} from 'nestjs-agent-sessions';
import { type HistoryFile } from '../history/history-file.js';
import { stepOfCall, type Tally } from '../history/history.js';
import { link } from '../history/link.js';
import { stepsOf } from './plan.js';
import { type Script, type ToolScript } from './script.js';

export const ORCHESTRATOR = 'chaos';
/** The signal that scripts wait for. */
export const SIGNAL = 'go';

/** An agent that follows the script in the message, and records its actions in the history. */
export function chaosOrchestrator(version: string, history: HistoryFile): OrchestratorDefinition<Tally> {
  let attempts = 0;
  return defineOrchestrator<Tally>({
    name: ORCHESTRATOR,
    version,
    initialState: () => ({ turns: 0, chain: '' }),
    keepCheckpoints: 'all',
    historyWindow: 4,
    steps: stepsOf(version),
    intents: {
      run: async (turn) => {
        attempts += 1;
        const attempt = `${history.process}/${attempts}`;
        const { id: turnId, sessionId } = turn;
        const tokens = turn.tools.state.cumulativeTokenUsage.totalTokens;
        history.note({ what: 'begin', sessionId, turnId, attempt, number: turn.attempt, tokens });
        turn.signal.addEventListener('abort', () => history.note({ what: 'abort', turnId, attempt }));
        try {
          return await runScript(turn, attempt, history);
        } finally {
          history.note({ what: 'end', turnId, attempt });
        }
      },
    },
  });
}

async function runScript(
  turn: TurnContext<Tally>,
  attempt: string,
  history: HistoryFile,
): Promise<TurnOutcome<Tally> | undefined> {
  const script = turn.input.metadata as unknown as Script;
  if (script.crashAfterMs !== null) return crash(turn, attempt, history, script.crashAfterMs);
  for (let index = 0; index < script.steps; index += 1) {
    const step = `step ${index}`;
    await turn.step(step, async () => {
      history.note({ what: 'step', turnId: turn.id, attempt, step });
      await delay(script.stepMs);
      return attempt;
    });
    for (let piece = 0; piece < script.emits; piece += 1) {
      void turn.emit({ type: 'piece', data: { attempt, index, piece } });
    }
    // A handler that obeys its abort stops here; others continue without their turn.
    if (script.listens && turn.signal.aborted) return undefined;
  }
  for (const [index, tool] of script.tools.entries()) await use(turn, attempt, history, index, tool);
  if (script.waitMs !== null) await turn.waitFor(SIGNAL, { timeoutMs: script.waitMs, onTimeout: () => null });
  if (turn.attempt <= script.failures) throw new Error('The script lets this attempt fail.');
  if (script.fails) throw Object.assign(new Error('The script lets this turn fail.'), { permanent: true });
  return reply(`${turn.input.text} ${attempt}`, {
    state: { turns: turn.state.turns + 1, chain: link(turn.state.chain, turn.id) },
  });
}

/** Kills the process. @throws if the attempt is aborted first */
async function crash(
  { id: turnId, signal }: TurnContext<Tally>,
  attempt: string,
  history: HistoryFile,
  afterMs: number,
): Promise<never> {
  await delay(afterMs, undefined, { signal });
  history.note({ what: 'crash', turnId, attempt });
  process.kill(process.pid, 'SIGKILL');
  return new Promise(() => undefined);
}

async function use(
  turn: TurnContext<Tally>,
  attempt: string,
  history: HistoryFile,
  index: number,
  { tool, tokens, fails }: ToolScript,
): Promise<void> {
  const callId = `${turn.id}-${index}`;
  const failure = new Error('The script lets this tool fail.');
  try {
    await turn.tools.use(tool, callId, () => {
      history.note({ what: 'step', turnId: turn.id, attempt, step: stepOfCall(callId) });
      if (fails) throw failure;
    });
  } catch (error) {
    if (error !== failure) throw error;
  }
  turn.usage.add({ promptTokens: tokens });
  history.note({ what: 'use', turnId: turn.id, attempt, callId, tool, tokens, failed: fails });
}
