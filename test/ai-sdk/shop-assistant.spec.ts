import { createOpenAICompatible as createModels6 } from '@ai-sdk/openai-compatible';
import * as ai6 from 'ai';
import * as ai7 from '../ai-7/ai.js';
import { createOpenAICompatible as createModels7 } from '../ai-7/openai-compatible.js';
import { Intent, Orchestrator, type TurnContext, type TurnOutcome } from 'nestjs-agent-sessions';
import { z } from 'zod';
import { type AnyLanguageModel, approvalSignal, streamReply } from '../../lib/ai-sdk/index.js';
import { type ReplySdk, streamReplyWith } from '../../lib/ai-sdk/stream-reply.js';
import { type AnyUIMessage } from '../../lib/chat/ui-message.js';
import { diverging } from '../../sample/06-ai-chat/provider/script.js';
import { shopAssistant } from '../../sample/06-ai-chat/provider/shop-assistant.js';
import { comparable, fold } from '../chat/clients.js';
import { eventually } from '../support/eventually.js';
import { SAMPLED_STORES, startApplication } from '../support/running-application.js';
import { startProvider } from '../support/scripted-provider.js';
import { type Chat, startChat } from './fixtures/chat.js';
import { failUntil } from './fixtures/desk.js';

interface Version {
  readonly name: string;
  readonly sdk: ReplySdk & Pick<typeof ai6, 'tool'>;
  readonly modelOf: (baseURL: string) => AnyLanguageModel;
}

const VERSIONS: readonly Version[] = [
  {
    name: 'ai 6',
    sdk: ai6,
    modelOf: (baseURL) => createModels6({ name: 'scripted', baseURL, includeUsage: true })('model'),
  },
  {
    name: 'ai 7',
    sdk: ai7 as unknown as Version['sdk'],
    modelOf: (baseURL) => createModels7({ name: 'scripted', baseURL, includeUsage: true })('model'),
  },
];

const ORDER = { id: '7', item: 'a lamp', euros: 40, status: 'shipped' };
const findOrder = ai6.tool({
  description: 'Finds an order by its number.',
  inputSchema: z.object({ orderId: z.string() }),
  execute: ({ orderId }) => (orderId === '7' ? ORDER : `There is no order ${orderId}.`),
});
const refundOrder = ai6.tool({
  inputSchema: z.object({ orderId: z.string(), euros: z.number() }),
  needsApproval: true,
  execute: ({ euros }) => ({ receipt: 'R-1', euros }),
});

describe.each(VERSIONS)('an assistant with $name and a provider', ({ sdk, modelOf }) => {
  it.each(SAMPLED_STORES)('AIS-01 talks about orders, over $name', async ({ open }) => {
    const provider = await startProvider(diverging(shopAssistant));
    const answer = async (turn: TurnContext): Promise<TurnOutcome> => {
      const model = modelOf(provider.baseURL);
      const outcome = await streamReplyWith(sdk, turn, { model, tools: { findOrder, refundOrder } });
      failUntil(2, turn);
      return outcome;
    };
    const chat = await startChat(answer, { adapter: open() });
    expect(await chat.send('Where are orders 7 and 9?')).toMatchObject({
      reply: 'Sure. Order 7, a lamp for 40 euros, is shipped. There is no order 9.',
    });

    const id = await chat.submit('Please refund order 7.');
    await approve(chat, id);
    expect(await chat.app.turns.result(id)).toMatchObject({
      reply: 'Sure. 40 euros are on their way. The receipt is R-1.',
    });
    // Failed attempts have not asked again.
    expect(provider.asked.map(({ outcome }) => outcome)).toEqual(Array.from({ length: 5 }, () => 'answered'));
    expect(provider.asked[4].request.messages.map(({ role }) => role)).toEqual([
      ...['user', 'assistant', 'tool', 'tool', 'assistant'],
      ...['user', 'assistant', 'tool', 'assistant', 'tool'],
    ]);
    const { content } = (await chat.log()).at(-1) as { content: AnyUIMessage['parts'] };
    expect(content.map(({ type }) => type)).toEqual([
      ...['step-start', 'reasoning', 'tool-findOrder'],
      ...['step-start', 'text', 'tool-refundOrder'],
      ...['step-start', 'text'],
    ]);
    const message: AnyUIMessage = { id, role: 'assistant', parts: content };
    expect(comparable(fold(await chat.chunks(id)))).toEqual(comparable(message));
  });
});

describe('streamReply', () => {
  it('AIS-01 answers in an agent of twenty lines', async () => {
    const provider = await startProvider(shopAssistant);
    const openai = VERSIONS[0].modelOf;

    @Orchestrator({ name: 'assistant', version: '1' })
    class Assistant {
      @Intent()
      chat(turn: TurnContext) {
        return streamReply(turn, {
          model: openai(provider.baseURL),
          system: 'You help with orders.',
          tools: { findOrder },
        });
      }
    }

    const { turns, session } = await startApplication({ orchestrators: [Assistant], providers: [Assistant] });
    const result = await turns.execute('assistant', 'Where is order 7?', { sessionId: await session() });
    expect(result).toMatchObject({ reply: 'Sure. Order 7, a lamp for 40 euros, is shipped.' });
  });
});

async function approve({ app: { turns } }: Chat, id: string): Promise<void> {
  const waitingFor = await eventually(async () => (await turns.get(id))?.waitingFor);
  expect(waitingFor.signal).toMatch(approvalSignal(''));
  await turns.signal(id, waitingFor.signal, { approved: true });
}
