import { Module } from '@nestjs/common';
import { SessionsModule } from 'nestjs-agent-sessions';
import { AirlineAgent } from './airline.agent.js';
import { AirlineModel } from './airline-model.js';
import { AirlineTools } from './airline-tools.js';
import { ConversationRunner } from './conversation-runner.js';
import { RecordedModel, RecordedTools, Recordings } from './recordings.js';

@Module({
  imports: [
    // More than the number of the agent's tools, so that `tool_used` covers them all.
    SessionsModule.forRoot({ orchestration: { recentTools: 20 } }),
    SessionsModule.forFeature([AirlineAgent]),
  ],
  providers: [
    Recordings,
    ConversationRunner,
    { provide: AirlineModel, useClass: RecordedModel },
    { provide: AirlineTools, useClass: RecordedTools },
  ],
})
export class AppModule {}
