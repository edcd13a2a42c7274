import { type INestApplicationContext } from '@nestjs/common';
import {
  getOrchestratorToken,
  type OrchestratorHandle,
  SessionStore,
  type TurnReport,
  TurnService,
  type TurnStream,
} from 'nestjs-agent-sessions';
import { OrdersService } from './orders.service.js';
import { type ScriptedProvider } from './scripted-provider.js';
import { SupportAgent } from './support.agent.js';

const CONVERSATION = ['Hello!', 'Where are orders 7 and 8?', 'Refund order 7 at once!', 'Yes, please.'];

/** Prints a conversation as a client sees it. @param script interrupts an answer to show the retry */
export async function demonstrate(app: INestApplicationContext, script: ScriptedProvider | null): Promise<void> {
  const agent = app.get<OrchestratorHandle>(getOrchestratorToken(SupportAgent), { strict: false });
  const turns = app.get(TurnService, { strict: false });
  const { id: sessionId } = await app.get(SessionStore, { strict: false }).create({ userId: 'ann' });
  if (script) script.pauseMs = 40;

  for (const [at, said] of CONVERSATION.entries()) {
    console.log(`\nuser    ${said}`);
    // Interrupts the answer about the payment.
    if (at === CONVERSATION.length - 1) script?.cutNext();
    const stream = agent.stream(said, { sessionId });
    await show(stream);
    const { id } = await stream.turn;
    console.log(summaryOf((await turns.get(id))?.report as unknown as TurnReport));
  }
  console.log(`\nThe bank was asked for ${app.get(OrdersService, { strict: false }).payments.length} payment.`);
}

async function show(stream: TurnStream): Promise<void> {
  let speaking = false;
  const line = (text: string): void => {
    process.stdout.write(`${speaking ? '\n' : ''}${text}\n`);
    speaking = false;
  };
  for await (const { type, data } of stream) {
    const event = data as Record<string, string>;
    if (type === 'delta') {
      process.stdout.write(speaking ? event.text : `agent   ${event.text}`);
      speaking = true;
    } else if (type === 'tool') line(`tool    ${event.tool}: ${event.result ?? event.failed}`);
    else if (type === 'attempt') line(`        (the provider hung up; attempt ${event.attempt})`);
    else if (event.reply === undefined) line(`        (${event.status}: ${event.code})`);
    else if (speaking) process.stdout.write('\n');
  }
}

function summaryOf({ iterations: [{ decision }], usage, attempt }: TurnReport): string {
  return `report  ${decision.intents.join(', ')}: ${decision.reasoning} ${usage?.totalTokens} tokens, attempt ${attempt}`;
}
