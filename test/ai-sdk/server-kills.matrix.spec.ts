import 'reflect-metadata';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { jest } from '@jest/globals';
import { type ChatMessages } from 'nestjs-agent-sessions/http';
import { type AnyUIMessage } from '../../lib/chat/ui-message.js';
import { assertComplete, assertShown, comparable, outlineOf } from '../../lib/testing/chat/shown-answer.js';
import { type ChatRequest, textOf } from '../../sample/06-ai-chat/provider/chat-completions.js';
import { type Script, type ScriptedAnswer } from '../../sample/06-ai-chat/provider/script.js';
import { type FrontEnd, frontEnd, VERSIONS } from '../chat/front-ends.js';
import { type Effect, ServerProcess, type ServerSetup, type WriteReport } from '../support/chat-server-process.js';
import { eventually } from '../support/eventually.js';
import { Network } from '../support/network.js';
import { gate } from '../support/running-application.js';
import { startProvider } from '../support/scripted-provider.js';
import { freePort } from '../support/services/server-process.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const LIMIT_MS = 60_000;
jest.setTimeout(3 * LIMIT_MS);

const UNDISTURBED = 'undisturbed';
/** All texts that the model answers with. */
const TEXTS = [1, 2].flatMap((version) =>
  [firstAnswer(version), secondAnswer(version)].flatMap(({ reasoning = '', text = '' }) => [reasoning, text]),
);

describe.each(VERSIONS)('a chat with ai %i, if the server is killed', (version) => {
  /** Opens when the server runs again. */
  const restarted = gate();
  /** What the first server has written for each chat. */
  const written = new Map<string, string[]>();
  /** The chats that have stopped at a write. */
  const stopped = new Set<string>();
  const failures: unknown[] = [];
  let url: string;
  let undisturbed: AnyUIMessage | undefined;

  // All chats stop at different writes of the same process, so that one kill is enough for all of them.
  it('AIS-14 AIS-13 completes each answer once after SIGKILL before and after each write of an answer', async () => {
    const folder = temporaryFolder();
    const port = await freePort();
    url = `http://127.0.0.1:${port}/chat`;
    // The servers have different models and effects, so that nothing of the killed one counts for the other.
    const models = [await startProvider(scriptOf(1)), await startProvider(scriptOf(2))];
    const files = [join(folder, 'effects-1'), join(folder, 'effects-2')];
    const setupOf = (server: 0 | 1): ServerSetup => ({
      port,
      database: join(folder, 'chat.db'),
      provider: models[server].baseURL,
      effects: files[server],
      version,
      protocol: version,
      holdsWrites: server === 0,
    });

    const first = await ServerProcess.start(setupOf(0), report);
    undisturbed = (await converse(UNDISTURBED)).messages[1];
    await eventually(() => writtenIn(UNDISTURBED).includes('settle-1'));
    const kills = writtenIn(UNDISTURBED).flatMap((write) => [`before-${write}`, `after-${write}`]);
    const ended = new Set<string>();
    const conversations = kills.map(async (kill) => {
      const chat = await converse(kill);
      ended.add(kill);
      return chat;
    });
    await eventually(() => kills.every((kill) => stopped.has(kill) || ended.has(kill)), { limitMs: LIMIT_MS });
    await first.kill();
    const second = await ServerProcess.start(setupOf(1));
    restarted.open();
    const pages = await Promise.all(conversations);

    expect(failures).toEqual([]);
    // Chunks may share a write, so that a chat can end before its last ones.
    expect(kills.filter((kill) => !stopped.has(kill) && !kill.includes('append'))).toEqual([]);
    expect(kills.filter((kill) => stopped.has(kill) && kill.includes('append')).length).toBeGreaterThan(0);
    const asked = models[1].asked.map(({ request }) => chatOf(request));
    const [earlier, later] = files.map(effectsIn);
    for (const [index, kill] of kills.entries()) {
      const { messages } = pages[index];
      expect([kill, messages.map(({ role }) => role)]).toEqual([kill, ['user', 'assistant']]);
      expectAnswer(kill, messages[1]);
      expect([kill, messages.map(comparable)]).toEqual([kill, (await storedIn(kill)).map(comparable)]);

      const answered = writtenIn(kill).filter((write) => write.startsWith('model_call-')).length;
      expect([kill, asked.filter((chat) => chat === kill).length]).toEqual([kill, 2 - answered]);

      const ofChat = ({ chat }: Effect): boolean => chat === kill;
      const repeated = later.filter(ofChat).filter(({ call }) => writtenIn(kill).includes(`${call}-1`));
      expect([kill, repeated]).toEqual([kill, []]);
      const keys = new Set([...earlier, ...later].filter(ofChat).map(({ key }) => key));
      expect([kill, keys.size]).toEqual([kill, 2]);
    }
    await second.kill();
  });

  /** Has a conversation as a page does: whenever the connection breaks, it loads the messages and resumes. */
  async function converse(id: string): Promise<FrontEnd> {
    let { chat, network } = open(id);
    for (;;) {
      const request = requestIn(chat.messages.at(-1));
      if (chat.status === 'error' && network.breaks === 0) throw new Error('The chat failed.', { cause: chat.error });
      // Also if the answer has ended after the messages were loaded, so that there was nothing to resume.
      if (chat.status === 'error' || chat.messages.at(-1)?.role === 'user') {
        await restarted.pass();
        ({ chat, network } = open(id, await storedIn(id)));
        await chat.resumeStream();
      } else if (chat.messages.length === 0) {
        await chat.sendMessage({ text: `Chat ${id}: where is order 7? And refund order 9.` });
      } else if (request !== undefined) {
        await chat.addToolApprovalResponse({ id: request, approved: true });
        await eventually(() => ['ready', 'error'].includes(chat.status), { limitMs: 2 * LIMIT_MS });
      } else {
        return chat;
      }
    }
  }

  function open(id: string, messages: readonly AnyUIMessage[] = []): { chat: FrontEnd; network: Network } {
    const network = new Network();
    return { chat: frontEnd({ version, id, api: url, messages, fetch: network.fetch, onShown }), network };
  }

  async function storedIn(id: string): Promise<readonly AnyUIMessage[]> {
    const response = await fetch(`${url}/${id}/messages`);
    return ((await response.json()) as ChatMessages).messages;
  }

  function onShown(message: AnyUIMessage): void {
    if (message.role !== 'assistant') return;
    try {
      assertShown(message, TEXTS, undisturbed);
    } catch (error) {
      failures.push(error);
    }
  }

  function expectAnswer(kill: string, answer: AnyUIMessage): void {
    assertComplete(answer, TEXTS);
    const same = isSteady(kill) ? contentOf : outlineOf;
    expect([kill, same(answer)]).toEqual([kill, same(undisturbed!)]);
  }

  function report({ chat, wrote }: WriteReport): void {
    if (wrote === undefined) stopped.add(chat);
    else written.set(chat, [...writtenIn(chat), wrote]);
  }

  function writtenIn(chat: string): readonly string[] {
    return written.get(chat) ?? [];
  }
});

/** Returns the first answer of the model. Its texts and ids name the version, so that a mixture of two is detected. */
function firstAnswer(version: number): ScriptedAnswer {
  return {
    reasoning: `Two (${version}) orders.`,
    text: `One (${version}) moment.`,
    calls: [
      { id: `find-${version}`, name: 'findOrder', args: { orderId: '7' } },
      { id: `refund-${version}`, name: 'refundOrder', args: { orderId: '9' } },
    ],
  };
}

/** Returns the answer to the results of the tools. */
function secondAnswer(version: number): ScriptedAnswer {
  return { text: `Both (${version}) are done.` };
}

/** Returns the answers of the model of a server. A chat that is not steady gets other words from each model. */
function scriptOf(model: number): Script {
  return (request) => {
    const answerOf = request.messages.some(({ role }) => role === 'tool') ? secondAnswer : firstAnswer;
    return answerOf(isSteady(chatOf(request)) ? 1 : model);
  };
}

/** Returns whether a model that is asked again answers the same. */
function isSteady(chat: string): boolean {
  return !chat.startsWith('after');
}

/** Returns the id of the chat, from the question. */
function chatOf({ messages }: ChatRequest): string {
  return /^Chat (\S+):/.exec(textOf(messages.find(({ role }) => role === 'user')!))![1];
}

/** Returns the id of the approval request in a message. */
function requestIn(message: AnyUIMessage | undefined): string | undefined {
  const part = message?.parts.find(({ state }) => state === 'approval-requested');
  return part && (part.approval as { readonly id: string }).id;
}

/** Returns a message without its id, which is that of the turn. */
function contentOf(message: AnyUIMessage): unknown {
  return comparable({ ...message, id: '' });
}

function effectsIn(file: string): Effect[] {
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [];
  return lines.map((line) => JSON.parse(line) as Effect);
}
