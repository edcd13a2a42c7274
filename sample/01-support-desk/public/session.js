import { ask, Refused } from './api.js';

/** The codes for a conversation that does not exist, or that this user cannot continue. */
export const NO_SESSION = ['UNAUTHENTICATED', 'SESSION_ID_MISSING', 'SESSION_NOT_FOUND', 'SESSION_STATE'];

/** Loads the conversation, with the turns after a position. Creates a conversation if none exists. */
export async function overview(after) {
  const path = `overview?after=${after}&limit=500`;
  try {
    return await ask(path);
  } catch (error) {
    if (!(error instanceof Refused && NO_SESSION.includes(error.code))) throw error;
    await begin();
    return ask(path);
  }
}

/** Creates a conversation and moves the page's surface to it. */
export async function begin() {
  const start = () => ask('sessions', { method: 'POST', body: { surface: 'web' } });
  try {
    await start();
  } catch (error) {
    if (error.code !== 'UNAUTHENTICATED') throw error;
    await ask('sign-in', { method: 'POST', body: {} });
    await start();
  }
}

/** Continues an earlier conversation. @throws Refused if it no longer exists */
export async function reopen(sessionId) {
  await ask('session', { method: 'POST', body: { surface: 'web' }, headers: { 'x-session-id': sessionId } });
}

/** Loads a page of the user's conversations. */
export async function conversations(cursor) {
  return ask(cursor ? `sessions?cursor=${encodeURIComponent(cursor)}` : 'sessions');
}
