import { PageApplication } from './page-application.js';
import { readPage } from './pages.js';

const { blocks } = readPage('docs/first-model.md');
const files = new Map(
  blocks.flatMap(({ file, text }) => (file && !file.includes('.spec.') ? [[file, text] as const] : [])),
);

describe('docs/first-model.md', () => {
  it('DAY-20 streams an answer of the scripted model with a tool, and accepts a message once', async () => {
    const application = await PageApplication.start(files);
    const say = async (id: string, text: string): Promise<Chunk[]> => {
      const message = { id, role: 'user', parts: [{ type: 'text', text }] };
      return chunksOf(await (await application.post('/chat', {}, { id: 'chat-1', message })).text());
    };

    const chunks = await say('m1', 'Where is order 7?');
    await say('m1', 'Where is order 7?');

    const shown = chunksOf(blocks.map(({ text }) => text).join('\n'));
    expect(shown).toHaveLength(3);
    // A response that begins late has several words in one chunk.
    for (const { delta: _, ...chunk } of shown) expect(chunks).toContainEqual(expect.objectContaining(chunk));
    expect(textOf(chunks)).toBe('Order 7, a lamp, is on its way.');
    expect(textOf(chunks)).toMatch(new RegExp(`^${textOf(shown)}`));
    const stored = await fetch(`${application.url}/chat/chat-1/messages`);
    expect(((await stored.json()) as { messages: object[] }).messages).toHaveLength(2);
  }, 120_000);
});

interface Chunk {
  readonly type: string;
  readonly delta?: string;
}

function textOf(chunks: readonly Chunk[]): string {
  return chunks.map(({ delta = '' }) => delta).join('');
}

/** Returns the chunks of a stream, without the values that the page omits. */
function chunksOf(stream: string): Chunk[] {
  return [...stream.matchAll(/^data: ({.*})$/gm)].map(([, json = '']) => {
    const chunk = Object.entries(JSON.parse(json) as object).filter(([, value]) => value !== '…');
    return Object.fromEntries(chunk) as unknown as Chunk;
  });
}
