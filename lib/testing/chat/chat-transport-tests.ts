import { loadPeer } from '../../common/load-peer.js';
import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { memoryAdapter } from '../../store/memory/memory-adapter.js';
import { toChatSdk } from './chat-client.js';
import { type ChatTransportTarget } from './chat-transport-target.js';
import { Conversations, type KillKind } from './conversations.js';
import { KillableStores } from './killable-stores.js';

/** A test of `describeChatTransport`. */
export interface ChatTransportTest {
  readonly title: string;
  readonly run: () => Promise<void>;
}

/** Returns the tests of an application. */
export function chatTransportTests(target: ChatTransportTarget): ChatTransportTest[] {
  const kills = [false, true].flatMap((isCut) => [false, true].map((isStored) => ({ isCut, isStored })));
  return [
    { title: 'shows the messages that are stored', run: () => runScenario(target, () => Promise.resolve()) },
    ...kills.map((kind) => ({
      title: titleOf(kind),
      run: () => runScenario(target, (conversations) => conversations.killEverywhere(kind)),
    })),
  ];
}

function titleOf({ isCut, isStored }: KillKind): string {
  const killed = isCut ? 'the worker and the connection are' : 'the worker is';
  return `shows each answer once if ${killed} killed ${isStored ? 'after' : 'before'} a write`;
}

/** Starts the application, has the undisturbed conversation, and then others. */
async function runScenario(
  target: ChatTransportTarget,
  test: (conversations: Conversations) => Promise<void>,
): Promise<void> {
  const sdk = toChatSdk(target.sdk ? await target.sdk() : await loadPeer('ai', () => import('ai')));
  const stores = new KillableStores();
  const memory = memoryAdapter();
  const open = (): SessionsAdapter => stores.wrap(target.store?.() ?? memory);
  const app = await target.start(open());
  try {
    const worker = await target.startWorker?.(open());
    try {
      const conversations = new Conversations(target, sdk, stores, app, worker ?? app);
      await conversations.begin();
      await test(conversations);
    } finally {
      await worker?.close();
    }
  } finally {
    await app.close();
  }
}
