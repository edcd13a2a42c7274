import { Module } from '@nestjs/common';
import { SessionsModule } from 'nestjs-agent-sessions';
import { AirlineAgent } from './airline.agent.js';
import { AirlineModel } from './airline-model.js';
import { AirlineTools } from './airline-tools.js';
import { Player } from './player.js';
import { RecordedModel, RecordedTools, Recordings } from './recordings.js';

@Module({
  imports: [
    // More tools than the agent has, so that `tool_used` forgets none of them.
    SessionsModule.forRoot({ orchestration: { recentTools: 20 } }),
    SessionsModule.forFeature([AirlineAgent]),
  ],
  providers: [
    Recordings,
    Player,
    { provide: AirlineModel, useClass: RecordedModel },
    { provide: AirlineTools, useClass: RecordedTools },
  ],
})
export class AppModule {}
