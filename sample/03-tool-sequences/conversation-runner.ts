import { Injectable } from '@nestjs/common';
import { InjectOrchestrator, OrchestratorHandle, SessionStore } from 'nestjs-agent-sessions';
import { AirlineAgent, type TurnLog } from './airline.agent.js';
import { type Conversation } from './conversation.js';
import { Recordings } from './recordings.js';

export interface ReplayedTurn extends TurnLog {
  readonly sessionId: string;
  readonly said: string;
  readonly answer: string;
}

/** Sends the recorded user messages to the agent: a session per conversation, a turn per message. */
@Injectable()
export class ConversationRunner {
  constructor(
    private readonly recordings: Recordings,
    private readonly sessions: SessionStore,
    @InjectOrchestrator(AirlineAgent) private readonly agent: OrchestratorHandle,
  ) {}

  async run(conversation: Conversation): Promise<ReplayedTurn[]> {
    const recorded = this.recordings.add(conversation);
    const session = await this.sessions.create({ userId: 'recorded', metadata: { conversation: conversation.id } });
    const turns: ReplayedTurn[] = [];
    for (const { said } of recorded) {
      const { reply, data } = await this.agent.execute(said, { sessionId: session.id });
      turns.push({ sessionId: session.id, said, answer: reply ?? '', ...(data as unknown as TurnLog) });
    }
    return turns;
  }
}
