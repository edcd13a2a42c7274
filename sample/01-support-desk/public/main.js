import { AnswerStream } from './answer-stream.js';
import { ask, Unreachable } from './api.js';
import { listen, offerStop } from './composer.js';
import { Conversation } from './conversation.js';
import { Outbox } from './outbox.js';
import { clearPanel, showPanel } from './panel.js';
import { repeat } from './repeat.js';
import { begin, overview } from './session.js';
import { stickToBottom } from './stick-to-bottom.js';

const REFRESH_MS = 1000;
const NOT_YET = 'Will be sent when the connection is back.';

const status = document.getElementById('status');
const newConversation = document.getElementById('new');
const toBottom = stickToBottom(document.getElementById('scroll'), document.getElementById('content'));
const conversation = new Conversation();
const outbox = new Outbox();
let startedAt;
let stream;
let isLost = false;
let isNewWanted = false;

/**
 * Polls the state, sends messages, and follows the running answer. It works sequentially: no message of a conversation is being sent while
 * the next conversation begins.
 */
async function refresh() {
  if (isNewWanted) {
    await begin();
    isNewWanted = false;
  }
  const now = await overview(conversation.seen);
  if (now.session.createdAt !== startedAt) {
    const isFirst = startedAt === undefined;
    startedAt = now.session.createdAt;
    // The turn was started here or in another tab.
    if (!isFirst) return startOver();
  }
  connected();
  if (isNewWanted) return;
  conversation.show(now.turns);
  showPanel(now);
  document.getElementById('log').removeAttribute('aria-busy');
  follow(conversation.current);
  while (outbox.messages.length > 0 && !isNewWanted) {
    await outbox.sendFirst((message, why) => conversation.refuse(message, why));
    soon();
  }
}

function follow(row) {
  offerStop(row !== undefined);
  if (stream?.turnId === row?.id && !stream?.isClosed) return;
  stream?.close();
  stream = row && new AnswerStream(row.id, { onText: (text) => row.say(text), onEnd: (end) => onEnd(row, end) });
}

function onEnd(row, end) {
  conversation.end(row, end);
  follow(conversation.current);
  soon();
}

function startOver() {
  conversation.clear();
  clearPanel();
  follow(conversation.current);
  showUnsent();
  soon();
}

function showUnsent() {
  outbox.messages.forEach((message) => conversation.add(message, isLost ? NOT_YET : ''));
}

function connected() {
  if (!isLost) return;
  isLost = false;
  status.textContent = '';
  // The EventSource would reconnect automatically, but only after some seconds.
  stream?.close();
}

function failed(error) {
  isLost = true;
  status.textContent = error instanceof Unreachable ? 'Connection lost. Reconnecting…' : error.message;
  showUnsent();
}

listen({
  onSend(text) {
    outbox.add(text);
    showUnsent();
    toBottom();
    soon();
  },
  async onStop() {
    const { current } = conversation;
    if (!current) return;
    await ask(`turns/${current.id}/cancel`, { method: 'POST' }).catch(failed);
    soon();
  },
});

newConversation.addEventListener('click', () => {
  isNewWanted = true;
  outbox.clear();
  startOver();
});

showUnsent();
const soon = repeat(() => refresh().catch(failed), REFRESH_MS);
