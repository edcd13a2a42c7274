import type * as ai6 from 'ai';
import * as ai7 from '../ai-7/ai.js';
import fc from 'fast-check';
import { type ConversationMessage, type MessageDraft } from 'nestjs-agent-sessions';
import { fromUIMessage, toUIMessages } from '../../lib/chat/stored-messages.js';
import { storeModelMessage } from '../../lib/chat/stored-model-message.js';
import { type AnyUIMessage, type UIChunk } from '../../lib/chat/ui-message.js';
import { toMessageDrafts } from '../../lib/conversation/message-draft.js';
import { completeCall, incompleteCall, logOf, uiMessages } from './arbitrary-messages.js';

const anyMessages = uiMessages(fc.oneof(completeCall, incompleteCall));

describe('stored UI messages', () => {
  it('AIS-06 restores every UI message exactly', () => {
    fc.assert(
      fc.property(anyMessages, (messages) => {
        const drafts = toMessageDrafts(messages.map(fromUIMessage), 'messages');
        expect(toUIMessages(logOf(drafts, 'turn-1'))).toEqual(messages);
      }),
    );
  });

  it('AIS-06 tests with messages that ai 7 accepts', async () => {
    await fc.assert(
      fc.asyncProperty(anyMessages, async (messages) => {
        await expect(ai7.validateUIMessages({ messages })).resolves.toEqual(messages);
      }),
    );
  });

  it('AIS-06 stores plain text as a string, also for other readers of the log', () => {
    const message: AnyUIMessage = { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Where is order 7?' }] };
    expect(fromUIMessage(message)).toEqual({
      role: 'user',
      content: 'Where is order 7?',
      metadata: { ui: { id: 'm1' } },
    });
    expect(fromUIMessage({ ...message, role: 'assistant' }).content).toEqual(message.parts);
  });

  it('AIS-06 accepts the messages and chunks of ai 6 and 7 by their types', () => {
    const parts: ai6.UIMessage['parts'] = [{ type: 'text', text: 'a' }];
    const six: ai6.UIMessage = { id: '6', role: 'user', parts };
    const seven: ai7.UIMessage = { id: '7', role: 'user', parts: [{ type: 'custom', kind: 'a.b' }] };
    const chunks: [ai6.UIMessageChunk, ai7.UIMessageChunk] = [{ type: 'finish' }, { type: 'reset-step' }];
    const structural: readonly UIChunk[] = chunks;
    expect(structural).toHaveLength(2);
    const drafts = [fromUIMessage(six), fromUIMessage(seven)];
    expect(toUIMessages<ai6.UIMessage>(drafts)[0].parts).toEqual(parts);
    expect(toUIMessages<ai7.UIMessage>(drafts)[1].parts).toEqual(seven.parts);
  });

  it('AIS-06 rejects a value that JSON cannot represent, with its path', () => {
    const parts = [{ type: 'data-day', data: { day: new Date(0) } }];
    expect(() => fromUIMessage({ id: 'm1', role: 'user', parts })).toThrow('message.content[0].data.day');
  });
});

describe('UI messages of other origins', () => {
  const uiOf = (drafts: readonly MessageDraft[], turnId?: string): AnyUIMessage[] =>
    toUIMessages(logOf(drafts, turnId));

  it('AIS-06 shows strings as text, and summaries as system messages', () => {
    const drafts: MessageDraft[] = [
      { role: 'system', content: 'Summary: the user asked for order 7.' },
      { role: 'user', content: 'And order 8?' },
      { role: 'assistant', content: 'It is on its way.' },
    ];
    expect(uiOf(drafts)).toEqual(
      drafts.map(({ role, content }, index) => ({
        id: `stored-${index}`,
        role,
        parts: [{ type: 'text', text: content }],
      })),
    );
  });

  it('AIS-06 shows tool calls with the results of the tool messages that follow', () => {
    const call = (id: string, given: string | object): unknown => ({ id, name: 'find', arguments: given });
    const messages = uiOf([
      {
        role: 'assistant',
        content: 'Let me look.',
        toolCalls: [call('a', '{"order":7}'), call('b', { order: 8 }), call('c', ''), call('d', '{"ord')],
      } as MessageDraft,
      { role: 'tool', toolCallId: 'b', content: [{ type: 'text', text: 'lost' }] },
      { role: 'tool', toolCallId: 'a', content: '{"found":true}' },
      { role: 'tool', toolCallId: 'unknown', content: 'left out' },
      { role: 'tool', content: 'without an id' },
    ]);
    const part = { type: 'dynamic-tool', toolName: 'find' };
    expect(messages).toEqual([
      {
        id: 'stored-0',
        role: 'assistant',
        parts: [
          { type: 'text', text: 'Let me look.' },
          { ...part, toolCallId: 'a', state: 'output-available', input: { order: 7 }, output: '{"found":true}' },
          {
            ...part,
            toolCallId: 'b',
            state: 'output-available',
            input: { order: 8 },
            output: [{ type: 'text', text: 'lost' }],
          },
          { ...part, toolCallId: 'c', state: 'input-available', input: {} },
          { ...part, toolCallId: 'd', state: 'output-available', input: '{"ord', output: 'without an id' },
        ],
      },
    ]);
  });

  it('AIS-06 shows the messages of one turn as the answer that clients received, with the id of the turn', () => {
    const log: ConversationMessage[] = [
      ...logOf([{ id: 'turn-1.0', role: 'user', content: 'Where is order 7?' }], 'turn-1'),
      ...logOf(
        [
          { id: 'turn-1.1', role: 'assistant', content: null, toolCalls: [{ id: 'a', name: 'find', arguments: {} }] },
          { id: 'turn-1.2', role: 'tool', toolCallId: 'a', content: 'found' },
          { id: 'turn-1.3', role: 'assistant', content: [{ type: 'step-start' }, { type: 'text', text: 'Found.' }] },
          { id: 'turn-1.4', role: 'assistant', content: 'Anything else?' },
        ],
        'turn-1',
      ),
      ...logOf([{ id: 'turn-2.0', role: 'assistant', content: 'A reminder.' }], 'turn-2'),
    ];
    expect(toUIMessages(log).map(({ id, parts }) => [id, ...parts.map(({ type, text }) => text ?? type)])).toEqual([
      ['turn-1.0', 'Where is order 7?'],
      ['turn-1', 'dynamic-tool', 'step-start', 'Found.', 'step-start', 'Anything else?'],
      ['turn-2', 'A reminder.'],
    ]);
  });

  it('AIS-06 gives each message its own id', () => {
    const note: MessageDraft = { role: 'system', content: 'note' };
    const said: MessageDraft = { role: 'assistant', content: 'said' };
    const sent: MessageDraft = { ...said, metadata: { ui: { id: 'client-1' } } };
    expect(uiOf([said, note, said, sent], 'turn-1').map(({ id }) => id)).toEqual([
      'turn-1',
      'stored-1',
      'stored-2',
      'client-1',
    ]);
    expect(uiOf([said, sent], 'turn-1').map(({ id }) => id)).toEqual(['turn-1', 'client-1']);
    expect(toUIMessages([note, said]).map(({ id }) => id)).toEqual(['message-0', 'message-1']);
  });

  it('AIS-06 shows the files of model messages at a URL that a page can load', () => {
    const bytes = Uint8Array.of(0, 0, 0);
    const sources = [
      ['https://example.com/a.png', 'https://example.com/a.png'],
      [new URL('https://example.com/a.png'), 'https://example.com/a.png'],
      [{ type: 'url', url: new URL('data:image/png;base64,AAAA') }, 'data:image/png;base64,AAAA'],
      ['AAAA', 'data:image/png;base64,AAAA'],
      [bytes, 'data:image/png;base64,AAAA'],
      [{ type: 'data', data: bytes }, 'data:image/png;base64,AAAA'],
      [{ type: 'text', text: 'a b' }, 'data:image/png,a%20b'],
      [{ type: 'reference', reference: { maker: 'file-1' } }, '', { maker: 'file-1' }],
      [{ maker: 'file-1' }, '', { maker: 'file-1' }],
    ] as const;
    const content = sources.map(([data]) => ({ type: 'file', mediaType: 'image/png', filename: 'a.png', data }));
    const [{ parts }] = uiOf([storeModelMessage({ role: 'user', content }, 'message')]);
    const file = { type: 'file', mediaType: 'image/png', filename: 'a.png' };
    expect(parts).toEqual(sources.map(([, url, providerReference]) => ({ ...file, url, providerReference })));
    const image = [{ type: 'image', image: bytes }];
    expect(uiOf([storeModelMessage({ role: 'user', content: image }, 'message')])[0].parts).toEqual([
      { type: 'file', mediaType: 'image/*', url: 'data:image/*;base64,AAAA' },
    ]);
  });

  it('AIS-06 shows a call with a result as approved if its approval was requested', () => {
    const ids = { toolCallId: 'a', toolName: 'find' };
    const content = [
      { type: 'tool-call', ...ids, input: {}, providerExecuted: true },
      { type: 'tool-approval-request', approvalId: 'ask', toolCallId: 'a', reason: 'It costs money.' },
      { type: 'tool-result', ...ids, output: { type: 'json', value: [7] } },
    ];
    expect(uiOf([storeModelMessage({ role: 'assistant', content }, 'message')])[0].parts).toEqual([
      {
        type: 'dynamic-tool',
        ...ids,
        state: 'output-available',
        input: {},
        output: [7],
        providerExecuted: true,
        approval: { id: 'ask', requestReason: 'It costs money.', approved: true },
      },
    ]);
  });

  it('AIS-06 shows only the metadata of UI messages to clients', () => {
    const metadata = { secret: 1, ui: { metadata: { shown: 2 } } };
    expect(uiOf([{ role: 'user', content: 'a', metadata }])).toMatchObject([{ metadata: { shown: 2 } }]);
    expect(uiOf([{ role: 'user', content: 'a', metadata: { ui: 'other' } }])[0]).not.toHaveProperty('metadata');
  });
});
