import { Injectable } from '@nestjs/common';
import { type TurnContext } from 'nestjs-agent-sessions';
import { AirlineModel, type Exchange, type ModelAnswer, type ToolCall } from './airline-model.js';
import { AirlineToolError, AirlineTools } from './airline-tools.js';
import { type Conversation, type RecordedTurn, turnsOf } from './conversation.js';

/** The recorded conversations. The metadata of a session contains the id of its conversation. */
@Injectable()
export class Recordings {
  private readonly turns = new Map<string, readonly RecordedTurn[]>();

  add(conversation: Conversation): readonly RecordedTurn[] {
    const turns = turnsOf(conversation);
    this.turns.set(conversation.id, turns);
    return turns;
  }

  turn({ session, turnIndex }: TurnContext): RecordedTurn {
    const id = String(session.metadata.conversation);
    const turn = this.turns.get(id)?.[turnIndex];
    if (!turn) throw new Error(`The conversation ${id} has no turn ${turnIndex}.`);
    return turn;
  }
}

/** Returns the recorded model answers, independent of the tool results. */
@Injectable()
export class RecordedModel extends AirlineModel {
  constructor(private readonly recordings: Recordings) {
    super();
  }

  next(turn: TurnContext, exchanges: readonly Exchange[]): ModelAnswer {
    const { calls, answer } = this.recordings.turn(turn);
    const next = calls[exchanges.length];
    return next ? { text: '', calls: next } : { text: answer, calls: [] };
  }
}

/** Returns the recorded tool results. */
@Injectable()
export class RecordedTools extends AirlineTools {
  constructor(private readonly recordings: Recordings) {
    super();
  }

  run(turn: TurnContext, { id, name }: ToolCall): string {
    const result = this.recordings.turn(turn).results.get(id);
    if (result === undefined) throw new AirlineToolError(`Error: this call of ${name} was not recorded`);
    if (result.startsWith('Error')) throw new AirlineToolError(result);
    return result;
  }
}
