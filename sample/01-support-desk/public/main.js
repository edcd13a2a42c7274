import { AnswerStream } from './answer-stream.js';
import { ask, Refused, Unreachable } from './api.js';
import { listen, offerStop, write } from './composer.js';
import { Conversation } from './conversation.js';
import { listConversations } from './history.js';
import { Outbox } from './outbox.js';
import { clearPanel, showPanel } from './panel.js';
import { repeat } from './repeat.js';
import { begin, overview, reopen } from './session.js';
import { stickToBottom } from './stick-to-bottom.js';

const REFRESH_MS = 1000;
const NOT_YET = 'Will be sent when the connection is back.';

const status = document.getElementById('status');
const newConversation = document.getElementById('new');
const toBottom = stickToBottom(document.getElementById('scroll'), document.getElementById('content'));
const conversation = new Conversation({ 'Send again': sendAgain, Edit: edit });
const outbox = new Outbox();
/** The shown conversation. Undefined until the server has named it. */
let sessionId;
/** A function that moves to the conversation that the user has chosen; undefined if none is chosen. */
let move;
let stream;
let isLost = false;

/**
 * Polls the state, sends messages, and follows the running answer. It works sequentially: no message of a conversation is being sent while
 * the next conversation begins.
 */
async function refresh() {
  await finishMove();
  const now = await overview(conversation.seen);
  connected();
  if (move) return;
  if (now.session.id !== sessionId) {
    const isMoved = sessionId !== undefined;
    sessionId = now.session.id;
    // Another tab has moved to another conversation.
    if (isMoved) return startOver();
  }
  outbox.assign(sessionId);
  conversation.show(now.turns);
  showUnsent();
  showPanel(now);
  document.getElementById('log').removeAttribute('aria-busy');
  follow(conversation.current);
  while (outbox.next && !move) {
    await outbox.sendNext();
    showUnsent();
    soon();
  }
}

async function finishMove() {
  const moving = move;
  try {
    await moving?.();
  } catch (error) {
    // A chosen conversation that no longer exists: the page stays in the previous one.
    if (!(error instanceof Refused)) throw error;
  }
  if (move === moving) move = undefined;
}

function follow(row) {
  offerStop(row !== undefined);
  if (stream?.turnId === row?.id && !stream?.isClosed) return;
  stream?.close();
  stream =
    row &&
    new AnswerStream(row.id, {
      onText: (text) => row.say(text),
      onContinued: () => row.change({ isContinued: true }),
      onEnd: (end) => onEnd(row, end),
    });
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
  outbox.of(sessionId).forEach((message) => conversation.add(message, isLost ? NOT_YET : ''));
  conversation.arrange();
}

function sendAgain(key) {
  outbox.sendAgain(key);
  conversation.remove(key);
  write();
  showUnsent();
  soon();
}

function edit(key) {
  conversation.remove(key);
  write(outbox.remove(key));
}

/** Moves to another conversation. Messages of this one that are not sent yet stay in it. */
function moveBy(how) {
  move = how;
  sessionId = undefined;
  startOver();
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
    outbox.add(text, sessionId);
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

newConversation.addEventListener('click', () => moveBy(begin));
listConversations({
  onOpen: (id) => moveBy(() => reopen(id)),
  unsentIn: (id) => outbox.of(id)[0]?.text,
});

showUnsent();
const soon = repeat(() => refresh().catch(failed), REFRESH_MS);
