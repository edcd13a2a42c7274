import { setTimeout as delay } from 'node:timers/promises';
import {
  Intent,
  type MessageDraft,
  Orchestrator,
  turnOutcome,
  type TurnContext,
  type TurnOutcome,
} from 'nestjs-agent-sessions';
import { EffectLog } from './effect-log.js';
import { toDraft } from './message-mapping.js';
import { type RecordedConversation, type RecordedTurn, turnsOf } from './record.js';

/** The recorded conversations by id. */
export class Recording {
  private readonly turns: ReadonlyMap<string, readonly RecordedTurn[]>;

  constructor(records: readonly RecordedConversation[]) {
    this.turns = new Map(records.map((record) => [record.id, turnsOf(record)]));
  }

  turn(conversation: string, index: number): RecordedTurn {
    const turn = this.turns.get(conversation)?.[index];
    // Permanent: the store returned an index that the record does not have, and a retry would not change it.
    if (!turn) throw Object.assign(new Error(`${conversation} has no turn ${index}.`), { permanent: true });
    return turn;
  }
}

/**
 * An agent that answers from the record. It uses the turn index of the store, not the input, so that a turn in the
 * wrong position gives a wrong answer.
 */
@Orchestrator({ name: 'recorded' })
export class Recorded {
  constructor(
    private readonly recording: Recording,
    private readonly effects: EffectLog,
  ) {}

  @Intent()
  async run(turn: TurnContext): Promise<TurnOutcome> {
    const { leading, rest } = this.recording.turn(turn.sessionId, turn.turnIndex);
    const messages: MessageDraft[] = leading.map(toDraft);
    for (const [index, message] of rest.entries()) {
      const said = await turn.step(message.role, async () => {
        this.effects.note(turn.id, index);
        await workForAWhile();
        return toDraft(message);
      });
      messages.push(said);
    }
    return turnOutcome({ messages });
  }
}

/** Simulates models and tools of different speed, so that kills happen before, during and after steps. */
async function workForAWhile(): Promise<void> {
  if (Math.random() < 0.5) await delay(Math.random() * 5);
}
