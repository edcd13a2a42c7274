import { setTimeout as delay } from 'node:timers/promises';
import { Intent, Orchestrator, reply, type TurnContext, type TurnOutcome } from 'nestjs-agent-sessions';
import { SELF, WorkerNotes } from './worker-notes.service.js';

/** The state of a conversation. */
interface Memory {
  answered?: number;
}

const STEPS = ['read', 'think', 'write'];
const FAILURE_RATE = 0.04;

/** Replaces an agent: it is slow, and its model is sometimes overloaded. */
@Orchestrator<Memory>({ name: 'assistant', version: '1' })
export class Assistant {
  constructor(private readonly notes: WorkerNotes) {}

  @Intent()
  async answer(turn: TurnContext<Memory>): Promise<TurnOutcome<Memory>> {
    await this.notes.write(turn);
    const doneBy: string[] = [];
    // A completed step is not repeated after its worker was killed: its result still contains that worker's name.
    for (const step of STEPS) doneBy.push(await turn.step(step, ({ signal }) => work(signal)));
    const answered = (turn.state.answered ?? 0) + 1;
    return reply(`Answer ${answered} to ${turn.input.text}`, { state: { answered }, data: { doneBy } });
  }
}

/** @returns the name of the worker */
async function work(signal: AbortSignal): Promise<string> {
  await delay(50 + 200 * Math.random(), undefined, { signal });
  if (Math.random() < FAILURE_RATE) throw new Error('The model is overloaded.');
  return SELF.name;
}
