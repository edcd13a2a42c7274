import { isDeepStrictEqual } from 'node:util';
import { type Checkpoint, type Turn } from 'nestjs-agent-sessions';
import { type SessionContents, type Tally } from '../../history/history.js';
import { link } from '../../history/link.js';
import { type Run } from '../run.js';

/** The states of successful turns form a chain without gaps or forks (BOT-20). */
export function* checkpoints(run: Run): Generator<string> {
  for (const session of run.contents.sessions) {
    const orchestrators = new Set([...session.turns, ...session.checkpoints].map(({ orchestrator }) => orchestrator));
    for (const name of orchestrators) yield* chain(session, name);
  }
}

/** Reports only the first error of the chain, because later ones have the same cause. */
function* chain({ sessionId, turns, checkpoints }: SessionContents, orchestrator: string): Generator<string> {
  const own = turns.filter((turn) => turn.orchestrator === orchestrator);
  const succeeded = own.filter(isSuccessful);
  const stored = checkpoints.filter((checkpoint) => checkpoint.orchestrator === orchestrator);
  const place = `session ${sessionId}, orchestrator ${orchestrator}`;
  let state: Tally = { turns: 0, chain: '' };
  for (let index = 0; index < Math.max(stored.length, succeeded.length); index += 1) {
    const checkpoint = stored[index] as Checkpoint | undefined;
    const turn = succeeded[index] as Turn | undefined;
    if (turn) state = { turns: index + 1, chain: link(state.chain, turn.id) };
    const wrong = difference(index, checkpoint, turn, state);
    if (wrong === null) continue;
    yield `${place}: ${wrong}`;
    return;
  }
  const idle = own.find((turn) => !isSuccessful(turn) && turn.turnIndex !== undefined);
  if (idle) yield `${place}: turn ${idle.id}, which is ${idle.status}, has turn index ${idle.turnIndex}`;
}

export function isSuccessful({ status }: Turn): boolean {
  return status === 'awaiting-input' || status === 'completed';
}

function difference(
  index: number,
  checkpoint: Checkpoint | undefined,
  turn: Turn | undefined,
  state: Tally,
): string | null {
  if (!checkpoint)
    return `turn ${turn?.id} (position ${turn?.position}) is number ${index} that succeeded, without a checkpoint`;
  const { turnIndex, parent, turnId } = checkpoint;
  const here = `checkpoint ${turnIndex} of turn ${turnId}`;
  if (turnIndex !== index) return `${here} is stored where ${index} was expected`;
  if (parent !== (index === 0 ? undefined : index - 1)) return `${here} has the parent ${parent}`;
  if (!turn) return `${here} belongs to no turn that succeeded`;
  if (turnId !== turn.id)
    return `${here} is stored where that of turn ${turn.id} (position ${turn.position}) was expected`;
  if (turn.turnIndex !== index) return `turn ${turn.id} says that its index is ${turn.turnIndex}, and it has ${here}`;
  if (isDeepStrictEqual({ ...checkpoint.state }, state)) return null;
  return `${here} has the state ${JSON.stringify(checkpoint.state)} instead of ${JSON.stringify(state)}`;
}
