import { createHash } from 'node:crypto';
import accept from './scripts/accept.lua.js';
import accessDocument from './scripts/access-document.lua.js';
import acquireLease from './scripts/acquire-lease.lua.js';
import appendCheckpoint from './scripts/append-checkpoint.lua.js';
import appendDocument from './scripts/append-document.lua.js';
import appendEvents from './scripts/append-events.lua.js';
import appendMessages from './scripts/append-messages.lua.js';
import attachSurface from './scripts/attach-surface.lua.js';
import awaited from './scripts/awaited.lua.js';
import cancel from './scripts/cancel.lua.js';
import checkpointHistory from './scripts/checkpoint-history.lua.js';
import checkpointedBy from './scripts/checkpointed-by.lua.js';
import checkpointedSessions from './scripts/checkpointed-sessions.lua.js';
import claim from './scripts/claim.lua.js';
import clearLane from './scripts/clear-lane.lua.js';
import controlLane from './scripts/control-lane.lua.js';
import conversedSessions from './scripts/conversed-sessions.lua.js';
import countDocuments from './scripts/count-documents.lua.js';
import countSessions from './scripts/count-sessions.lua.js';
import createSession from './scripts/create-session.lua.js';
import deleteCheckpoints from './scripts/delete-checkpoints.lua.js';
import deleteDocument from './scripts/delete-document.lua.js';
import deleteExpiredDocuments from './scripts/delete-expired-documents.lua.js';
import deleteSession from './scripts/delete-session.lua.js';
import detachSurface from './scripts/detach-surface.lua.js';
import due from './scripts/due.lua.js';
import dueOrOffered from './scripts/due-or-offered.lua.js';
import eraseSession from './scripts/erase-session.lua.js';
import evictIdleDocuments from './scripts/evict-idle-documents.lua.js';
import expireSession from './scripts/expire-session.lua.js';
import expireStale from './scripts/expire-stale.lua.js';
import findSessions from './scripts/find-sessions.lua.js';
import getDocument from './scripts/get-document.lua.js';
import getLane from './scripts/get-lane.lua.js';
import getSession from './scripts/get-session.lua.js';
import getTurn from './scripts/get-turn.lua.js';
import insertSession from './scripts/insert-session.lua.js';
import lastEvent from './scripts/last-event.lua.js';
import listDocuments from './scripts/list-documents.lua.js';
import listLanes from './scripts/list-lanes.lua.js';
import listNamespaces from './scripts/list-namespaces.lua.js';
import listTurns from './scripts/list-turns.lua.js';
import loadCheckpoint from './scripts/load-checkpoint.lua.js';
import mergeMetadata from './scripts/merge-metadata.lua.js';
import messagePage from './scripts/message-page.lua.js';
import messageWindow from './scripts/message-window.lua.js';
import pruneCheckpoints from './scripts/prune-checkpoints.lua.js';
import purgeExpired from './scripts/purge-expired.lua.js';
import purgeSettled from './scripts/purge-settled.lua.js';
import readEvents from './scripts/read-events.lua.js';
import release from './scripts/release.lua.js';
import renew from './scripts/renew.lua.js';
import renewLease from './scripts/renew-lease.lua.js';
import resetState from './scripts/reset-state.lua.js';
import retry from './scripts/retry.lua.js';
import revokeSession from './scripts/revoke-session.lua.js';
import saveAwaited from './scripts/save-awaited.lua.js';
import saveStep from './scripts/save-step.lua.js';
import setDocument from './scripts/set-document.lua.js';
import settle from './scripts/settle.lua.js';
import signal from './scripts/signal.lua.js';
import suspendStale from './scripts/suspend-stale.lua.js';
import touchSession from './scripts/touch-session.lua.js';
import turnSignals from './scripts/turn-signals.lua.js';
import turnSteps from './scripts/turn-steps.lua.js';
import updateSession from './scripts/update-session.lua.js';
import wait from './scripts/wait.lua.js';

/** A Lua script, which Redis caches by its SHA-1 hash. */
export interface Script {
  readonly lua: string;
  readonly sha: string;
  readonly writes: boolean;
}

export const SCRIPTS = scripts({
  accept,
  accessDocument,
  acquireLease,
  appendCheckpoint,
  appendDocument,
  appendEvents,
  appendMessages,
  attachSurface,
  awaited,
  cancel,
  checkpointHistory,
  checkpointedBy,
  checkpointedSessions,
  claim,
  clearLane,
  controlLane,
  conversedSessions,
  countDocuments,
  countSessions,
  createSession,
  deleteCheckpoints,
  deleteDocument,
  deleteExpiredDocuments,
  deleteSession,
  detachSurface,
  due,
  dueOrOffered,
  eraseSession,
  evictIdleDocuments,
  expireSession,
  expireStale,
  findSessions,
  getDocument,
  getLane,
  getSession,
  getTurn,
  insertSession,
  lastEvent,
  listDocuments,
  listLanes,
  listNamespaces,
  listTurns,
  loadCheckpoint,
  mergeMetadata,
  messagePage,
  messageWindow,
  pruneCheckpoints,
  purgeExpired,
  purgeSettled,
  readEvents,
  release,
  renew,
  renewLease,
  resetState,
  retry,
  revokeSession,
  saveAwaited,
  saveStep,
  setDocument,
  settle,
  signal,
  suspendStale,
  touchSession,
  turnSignals,
  turnSteps,
  updateSession,
  wait,
});

function scripts<Name extends string>(texts: Readonly<Record<Name, string>>): Readonly<Record<Name, Script>> {
  const scripts = {} as Record<Name, Script>;
  for (const name in texts) scripts[name] = scriptOf(texts[name]);
  return scripts;
}

function scriptOf(lua: string): Script {
  return { lua, sha: createHash('sha1').update(lua).digest('hex'), writes: !lua.startsWith('#!lua flags=no-writes') };
}
