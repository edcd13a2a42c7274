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

/** Asks how things stand, sends what was typed, and follows the answer that is under way. */
async function refresh() {
  const now = await overview(conversation.seen);
  if (now.session.createdAt !== startedAt) {
    const isFirst = startedAt === undefined;
    startedAt = now.session.createdAt;
    // Begun here or in another tab.
    if (!isFirst) return startOver();
  }
  connected();
  conversation.show(now.turns);
  showPanel(now);
  document.getElementById('log').removeAttribute('aria-busy');
  follow(conversation.current);
  if (outbox.messages.length > 0) {
    await outbox.send((message, why) => conversation.refuse(message, why));
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
  soon();
}

function startOver() {
  conversation.clear();
  clearPanel();
  soon();
}

function connected() {
  if (!isLost) return;
  isLost = false;
  status.textContent = '';
  // It would come back by itself, within some seconds.
  stream?.close();
}

function failed(error) {
  isLost = true;
  status.textContent = error instanceof Unreachable ? 'Connection lost, trying again…' : error.message;
  outbox.messages.forEach((message) => conversation.add(message, NOT_YET));
}

listen({
  onSend(text) {
    conversation.add(outbox.add(text), isLost ? NOT_YET : '');
    toBottom();
    soon();
  },
  onStop: () => attempt(() => ask(`turns/${conversation.current?.id}/cancel`, { method: 'POST' })),
});

newConversation.addEventListener('click', () =>
  attempt(async () => {
    await begin();
    outbox.clear();
  }),
);

async function attempt(action) {
  await action().catch(failed);
  soon();
}

outbox.messages.forEach((message) => conversation.add(message));
const soon = repeat(() => refresh().catch(failed), REFRESH_MS);
