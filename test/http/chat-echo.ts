import * as ai6 from 'ai';
import { defineOrchestrator, type OrchestratorRef, type TurnContext } from 'nestjs-agent-sessions';
import { scriptedModel, type ScriptedModel } from 'nestjs-agent-sessions/testing';
import { streamReplyWith } from '../../lib/ai-sdk/stream-reply.js';
import { type Gate, gate } from '../support/running-application.js';

export interface Echo {
  readonly orchestrator: OrchestratorRef;
  readonly model: ScriptedModel;
  /** Stops the answer to a message before its last word, until the gate is open. */
  readonly hold: (message: string) => Gate;
}

/** Returns an assistant that answers `The answer to X` to each message X. */
export function echo(sdk: typeof ai6 = ai6): Echo {
  const gates = new Map<string, Gate>();
  async function* answerTo(message: string): AsyncGenerator<string, void> {
    yield 'The answer ';
    yield 'to ';
    await gates.get(message)?.pass();
    yield message;
  }
  const model = scriptedModel(({ said }) => ({ text: answerTo(said) }));
  const orchestrator = defineOrchestrator({
    name: 'echo',
    intents: { answer: (turn: TurnContext) => streamReplyWith(sdk, turn, { model }) },
  });
  const hold = (message: string): Gate => {
    const held = gate();
    gates.set(message, held);
    return held;
  };
  return { orchestrator, model, hold };
}
