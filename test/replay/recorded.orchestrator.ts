import { setTimeout as delay } from 'node:timers/promises';
import {
  Intent,
  type MessageDraft,
  Orchestrator,
  outcome,
  type TurnContext,
  type TurnOutcome,
} from 'nestjs-agent-sessions';
import { EffectLog } from './effect-log.js';
import { toDraft } from './message-mapping.js';
import { type RecordedConversation, type RecordedTurn, turnsOf } from './record.js';

/** The conversations that are played, by id. */
export class Recording {
  private readonly turns: ReadonlyMap<string, readonly RecordedTurn[]>;

  constructor(records: readonly RecordedConversation[]) {
    this.turns = new Map(records.map((record) => [record.id, turnsOf(record)]));
  }

  turn(conversation: string, index: number): RecordedTurn {
    const turn = this.turns.get(conversation)?.[index];
    // A further attempt would find no more: the store gave out an index that the record does not have.
    if (!turn) throw Object.assign(new Error(`${conversation} has no turn ${index}.`), { permanent: true });
    return turn;
  }
}

/**
 * An agent that says what the record says. It goes by the index that the store gives to the turn, not by the input, so
 * that a turn run in the wrong place answers the wrong thing.
 */
@Orchestrator({ name: 'recorded' })
export class Recorded {
  constructor(
    private readonly recording: Recording,
    private readonly effects: EffectLog,
  ) {}

  @Intent()
  async play(turn: TurnContext): Promise<TurnOutcome> {
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
    return outcome({ messages });
  }
}

/** Models and tools take their time, some more than others: a kill falls before, into and after steps. */
async function workForAWhile(): Promise<void> {
  if (Math.random() < 0.5) await delay(Math.random() * 5);
}
