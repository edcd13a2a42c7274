import { Injectable } from '@nestjs/common';
import { InjectOrchestrator, OrchestratorHandle, SessionStore } from 'nestjs-agent-sessions';
import { AirlineAgent, type TurnLog } from './airline.agent.js';
import { type Conversation } from './conversation.js';
import { Recordings } from './recordings.js';

export interface PlayedTurn extends TurnLog {
  readonly sessionId: string;
  readonly said: string;
  readonly answer: string;
}

/** Says to the agent what recorded users said: a session for each conversation, a turn for each message. */
@Injectable()
export class Player {
  constructor(
    private readonly recordings: Recordings,
    private readonly sessions: SessionStore,
    @InjectOrchestrator(AirlineAgent) private readonly agent: OrchestratorHandle,
  ) {}

  async play(conversation: Conversation): Promise<PlayedTurn[]> {
    const turns = this.recordings.add(conversation);
    const session = await this.sessions.create({ userId: 'recorded', metadata: { conversation: conversation.id } });
    const played: PlayedTurn[] = [];
    for (const { said } of turns) {
      const { reply, data } = await this.agent.execute(said, { sessionId: session.id });
      played.push({ sessionId: session.id, said, answer: reply ?? '', ...(data as unknown as TurnLog) });
    }
    return played;
  }
}
