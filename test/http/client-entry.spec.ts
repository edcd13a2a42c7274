import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { runInNewContext } from 'node:vm';
import { type EventStreamFetch, type readAnswer, type stateClient } from 'nestjs-agent-sessions/client';

/** The globals of browsers and other runtimes that the reader uses besides `fetch`. */
const WEB = { AbortController, clearTimeout, setTimeout, TextDecoder };

describe('the built entry /client', () => {
  it('NST-04 calls the control plane with fetch alone, without Nest or Node', async () => {
    const sent: unknown[] = [];
    const fetch = async (...call: unknown[]) => {
      sent.push(call);
      return { status: 200, text: async () => '{"operation":"describe","stores":[]}' };
    };
    const { stateClient } = clientWith({ fetch });
    const client = stateClient({ baseUrl: 'http://desk' });

    expect(await client.describe({})).toEqual({ operation: 'describe', stores: [] });
    expect(sent).toMatchObject([['http://desk/state/describe', { method: 'POST', body: '{}' }]]);
  });

  it('DAY-21 reads a turn with fetch and what other runtimes have, without Nest or Node', async () => {
    const settled = { id: 't1', sessionId: 's1', status: 'completed', reply: 'Hello.' };
    const streams = [
      'event: delta\nid: 1\ndata: {"text":"Hel',
      'lo"}\n\n',
      // The connection ends here.
      null,
      `event: settled\nid: 2\ndata: ${JSON.stringify(settled)}\n\n`,
    ];
    const sent: (string | undefined)[] = [];
    const fetch: EventStreamFetch = async (_, { headers }) => {
      sent.push(headers['last-event-id']);
      const read = async () => {
        const part = streams.shift();
        return typeof part === 'string' ? { done: false, value: new TextEncoder().encode(part) } : { done: true };
      };
      const type = (name: string) => (name === 'content-type' ? 'text/event-stream' : null);
      return { status: 200, headers: { get: type }, body: { getReader: () => ({ read }) }, text: async () => '' };
    };
    const { readAnswer } = clientWith({ ...WEB, fetch });
    const shown: unknown[] = [];
    for await (const answer of readAnswer({ url: '/turns/t1/events' })) shown.push([answer.text, answer.settled]);

    expect(shown).toEqual([
      ['Hello', undefined],
      ['Hello.', settled],
    ]);
    expect(sent).toEqual([undefined, '1']);
  });
});

/** Runs the modules of the entry with these globals and those of the language only. */
function clientWith(globals: object): {
  readonly readAnswer: typeof readAnswer;
  readonly stateClient: typeof stateClient;
} {
  const code = [...modulesOf(join(import.meta.dirname, '../../dist/client/index.js')).values()]
    .join('\n')
    .replaceAll(/^(import|export \{.*\} from) .*$/gm, '')
    .replaceAll(/^export /gm, '');
  return runInNewContext(`${code}\n({ readAnswer, stateClient })`, globals) as ReturnType<typeof clientWith>;
}

/** Returns the source of a module and of its imports, by path. @throws if one imports a package */
function modulesOf(file: string, found = new Map<string, string>()): Map<string, string> {
  if (found.has(file)) return found;
  const code = readFileSync(file, 'utf8');
  const imports = [...code.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map(([, specifier]) => specifier);
  for (const specifier of imports) {
    if (!specifier.startsWith('./')) throw new Error(`${file} imports ${specifier}.`);
    modulesOf(resolve(dirname(file), specifier), found);
  }
  return found.set(file, code);
}
