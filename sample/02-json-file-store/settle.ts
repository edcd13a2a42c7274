import {
  type ClaimRequest,
  type SettledTurn,
  StateResetError,
  type TurnHold,
  type TurnSettlement,
  writtenNamespaces,
} from 'nestjs-agent-sessions';
import { appendCheckpoint } from './checkpoints.js';
import { touchSession } from './change-session.js';
import { endTurn } from './change-turn.js';
import { claim } from './claim.js';
import { appendMessages } from './conversations.js';
import { appendTo } from './document-rows.js';
import { headOf, held, isDue, watch } from './lane.js';
import { resetSince } from './reset-state.js';
import { type Store } from './store.js';
import { isLive } from './tables.js';

export function settle(store: Store, hold: TurnHold, settlement: TurnSettlement, next?: ClaimRequest): SettledTurn {
  const known = store.turns.get(hold.turnId);
  if (known?.settledWith === hold.fence) return { turn: known.turn, ...goOn(store, hold.sessionId, next) };

  const { lane, row } = held(store, hold);
  const { sessionId, failures } = row.turn;
  const {
    status,
    reply,
    error,
    report,
    usage,
    checkpoint,
    keepCheckpoints,
    messages,
    sessionTtlMs,
    stateChanges = [],
  } = settlement;
  const reset = resetSince(lane, row.epochs, writtenNamespaces(settlement));
  if (reset.length) throw new StateResetError(sessionId, reset);
  if (checkpoint) appendCheckpoint(store, checkpoint, keepCheckpoints);
  appendMessages(store, sessionId, messages, row.turn);
  for (const { name, append } of stateChanges) appendTo(store, { ...name, sessionId }, append);
  const sessionChange =
    status === 'awaiting-input' || status === 'completed' ? touch(store, sessionId, sessionTtlMs) : undefined;
  const turn = endTurn(
    store,
    { ...row, settledWith: hold.fence },
    {
      status,
      reply,
      error,
      report,
      usage: usage ?? row.turn.usage,
      turnIndex: checkpoint?.turnIndex,
      failures: status === 'failed' ? failures + 1 : failures,
    },
  );
  watch(store, { ...lane, running: undefined });
  return { turn, ...(sessionChange && { sessionChange }), ...goOn(store, sessionId, next) };
}

function goOn(store: Store, sessionId: string, request?: ClaimRequest): Pick<SettledTurn, 'next' | 'ring'> {
  const next = request ? claim(store, sessionId, request) : null;
  return { next, ring: isDue(store, headOf(store, sessionId)?.turn) };
}

function touch(store: Store, sessionId: string, ttlMs?: number): SettledTurn['sessionChange'] {
  const session = store.sessions.get(sessionId);
  if (!session || !isLive(session)) return undefined;
  return touchSession(store, sessionId, ttlMs === undefined ? {} : { ttlMs });
}
