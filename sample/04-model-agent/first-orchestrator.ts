import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  Evaluate,
  getOrchestratorToken,
  Intent,
  type IntentReply,
  Orchestrator,
  type OrchestratorHandle,
  reply,
  Route,
  SessionsModule,
  SessionStore,
  type TurnContext,
} from 'nestjs-agent-sessions';

interface Notes {
  drafts?: number;
}

@Orchestrator<Notes>({ name: 'copywriter', iterate: true, maxIterations: 5 })
class Copywriter {
  @Route() // selects the intents for a message; a model can do this later
  route({ input }: TurnContext<Notes>) {
    return /slogan/i.test(input.text) ? 'write' : /bye/i.test(input.text) ? 'part' : 'chat';
  }

  @Intent()
  chat({ state }: TurnContext<Notes>) {
    return reply(`I have written ${state.drafts ?? 0} drafts for you.`);
  }

  @Intent()
  async write(turn: TurnContext<Notes>) {
    const { drafts = 0 } = turn.state;
    // Ask your model here, with the feedback in its prompt. A step is stored, so it is not repeated after a crash.
    const draft = await turn.step('draft', () => {
      if (!turn.feedback) return 'Lamps for everybody who reads in bed until late';
      return `${turn.replies[0]?.text}`.split(' ').slice(0, -2).join(' ');
    });
    return reply(draft, { state: { drafts: drafts + 1 } });
  }

  @Intent()
  part() {
    return reply('Goodbye!', { status: 'completed' }); // the conversation is over
  }

  @Evaluate() // after each iteration: accept, or iterate again
  check(_: TurnContext<Notes>, [answer]: readonly IntentReply[]) {
    const tooLong = (answer?.text ?? '').length - 30;
    if (answer?.intent !== 'write' || tooLong <= 0) return true;
    return { feedback: `Shorter, by ${tooLong} characters.` };
  }
}

@Module({ imports: [SessionsModule.forRoot(), SessionsModule.forFeature([Copywriter])] })
class AppModule {}

const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
const copywriter = app.get<OrchestratorHandle<Notes>>(getOrchestratorToken(Copywriter), { strict: false });
copywriter.on('routed', ({ iteration, intents }) => console.log(`  iteration ${iteration}: ${intents.join(', ')}`));

const { id: sessionId } = await app.get(SessionStore).create({ userId: 'ann' });
for (const text of ['A slogan, please.', 'How many drafts was that?', 'Bye!']) {
  console.log(text);
  const { status, reply: answer } = await copywriter.execute(text, { sessionId });
  console.log(`  ${answer} (${status})`);
}
await app.close();
