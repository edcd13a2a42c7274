import {
  type AwaitedTurn,
  type Checkpoint,
  type ClaimedTurn,
  type JsonValue,
  type Lane,
  type Lease,
  type Message,
  type Session,
  type StateAddress,
  type StateDocument,
  type StepKey,
  stepText,
  type StoredStep,
  type Turn,
  type TurnEvent,
} from 'nestjs-agent-sessions';
import { type Key } from './sorted-index.js';
import { Table } from './table.js';

export type Epochs = ClaimedTurn['epochs'];

export interface TurnRow {
  readonly turn: Turn;
  readonly idempotencyHash?: string;
  /** The step that takes the result of a waiting turn's wait. */
  readonly waitStep?: StepKey;
  /** The fence that settled it. */
  readonly settledWith?: number;
  /** Those of its lane when it was claimed first. */
  readonly epochs?: Epochs;
  /** How long its events stay once it is over; left out while it has none. */
  readonly eventsTtlMs?: number;
}

/** What an attempt emitted at once. */
export interface BatchRow {
  readonly turnId: string;
  readonly fence: number;
  readonly number: number;
  readonly events: readonly TurnEvent[];
}

/** Times are milliseconds since 1970. */
export interface LaneRow {
  readonly sessionId: string;
  readonly nextPosition: number;
  readonly fence: number;
  /** Who has the head now. */
  readonly running?: { readonly turnId: string; readonly holder: string; readonly leaseEnd: number };
  /** What the head waited for when it had this fence. */
  readonly awaited?: { readonly fence: number; readonly turns: readonly AwaitedTurn[] };
  /** When somebody must look at the lane next. */
  readonly attentionAt?: number;
  /** How often `due` gave it since the last claim. */
  readonly offers: number;
  /** `attentionAt` before the first of them. */
  readonly firstAttentionAt?: number;
  /** Left out: open. */
  readonly mode?: Lane['mode'];
  /** The one that was begun last, by namespace. */
  readonly epochs?: Epochs;
}

export type LeaseRow = Lease & { readonly until: number };

/** All that the store keeps. An index is there for each question that is asked; see where it is used. */
export class Tables {
  readonly sessions = new Table((session: Session) => [session.id], {
    recent: (session) => [byActivity(session)],
    user: (session) => [[session.userId, ...byActivity(session)]],
    surface: (session) => session.attachedSurfaces.map((surface) => [surface, ...byActivity(session)]),
    slot: (session) => (isLive(session) ? slotsOf(session) : []),
    state: (session) => {
      const since = stateSince(session);
      return since === undefined ? [] : [[session.state, ms(since), session.id]];
    },
    age: (session) => (isLive(session) ? [[ms(session.createdAt), session.id]] : []),
  });
  readonly erased = new Table((row: { readonly sessionId: string }) => [row.sessionId], {});

  readonly lanes = new Table((lane: LaneRow) => [lane.sessionId], {
    attention: ({ attentionAt, sessionId }) => (attentionAt === undefined ? [] : [[attentionAt, sessionId]]),
  });
  readonly turns = new Table((row: TurnRow) => [row.turn.id], {
    lane: ({ turn }) => [[turn.sessionId, turn.position]],
    settled: ({ turn: { settledAt, id } }) => (settledAt === undefined ? [] : [[ms(settledAt), id]]),
    expiry: ({ turn: { settledAt, id }, eventsTtlMs }) =>
      settledAt === undefined || eventsTtlMs === undefined ? [] : [[ms(settledAt) + eventsTtlMs, id]],
    open: ({ turn }) => (isOpen(turn) ? [[turn.sessionId, turn.position]] : []),
    key: ({ turn: { sessionId, idempotencyKey, position } }) =>
      idempotencyKey === undefined ? [] : [[sessionId, idempotencyKey, position]],
  });
  readonly steps = new Table((row: { turnId: string; step: StoredStep }) => stepPlace(row.turnId, row.step), {
    turn: ({ turnId, step }) => [stepPlace(turnId, step)],
  });
  readonly signals = new Table((row: { turnId: string; name: string; payload: JsonValue }) => [row.turnId, row.name], {
    turn: ({ turnId, name }) => [[turnId, name]],
  });
  readonly batches = new Table((row: BatchRow) => [row.turnId, lastOffset(row)], {
    turn: (row) => [[row.turnId, lastOffset(row)]],
  });

  readonly messages = new Table(
    (row: { sessionId: string; message: Message }) => [row.sessionId, row.message.position],
    {
      log: ({ sessionId, message }) => [[sessionId, message.position]],
    },
  );
  readonly checkpoints = new Table((c: Checkpoint) => [c.orchestrator, c.sessionId, c.turnIndex], {
    latest: (c) => [[c.orchestrator, c.sessionId, -c.turnIndex]],
    session: (c) => [[c.sessionId, c.orchestrator, c.turnIndex]],
  });
  readonly documents = new Table((row: { address: StateAddress; document: StateDocument }) => addressId(row.address), {
    session: ({ address }) => [placeOf(address)],
    access: ({ address, document }) => [[address.namespace, ms(document.accessedAt), ...addressId(address)]],
    expiry: ({ address, document: { expiresAt } }) =>
      expiresAt === undefined ? [] : [[ms(expiresAt), ...addressId(address)]],
  });
  readonly leases = new Table((lease: LeaseRow) => [lease.name], {});
}

export const lastOffset = ({ events }: BatchRow): number => events[events.length - 1].offset;

export const ms = (time: string): number => Date.parse(time);

export const isOpen = ({ status }: Turn): boolean => ['queued', 'running', 'waiting'].includes(status);

export const isLive = ({ state }: Session): boolean => state !== 'expired';

/** The order of `fetchMany`: newest first, then by id. */
export function byActivity(place: Pick<Session, 'lastActivityAt' | 'createdAt' | 'id'>): Key {
  return [-ms(place.lastActivityAt), -ms(place.createdAt), place.id];
}

/** Names are never empty, so '' says "no workspace" and "no surface". */
export function slotKey({ userId, workspaceId }: Pick<Session, 'userId' | 'workspaceId'>, surface = ''): Key {
  return [userId, workspaceId ?? '', surface];
}

function slotsOf(session: Session): Key[] {
  const surfaces = session.attachedSurfaces.length ? session.attachedSurfaces : [''];
  return surfaces.map((surface) => [...slotKey(session, surface), -ms(session.createdAt), session.id]);
}

/** Since when a live session is idle, or an expired one is over. */
export function stateSince({ state, stateChangedAt, lastActivityAt }: Session): string | undefined {
  return state === 'expired' ? stateChangedAt : lastActivityAt;
}

export function stepPlace(turnId: string, key: StepKey): Key {
  return [turnId, stepText(key)];
}

/** By scope and key as `list` has them: in the order of their bytes. */
export function placeOf({ sessionId, namespace, scope, key }: StateAddress): Key {
  return [sessionId, namespace, bytesOf(scope), bytesOf(key)];
}

export const bytesOf = (name: string): string => Buffer.from(name).toString('hex');

function addressId({ namespace, scope, sessionId, key }: StateAddress): Key {
  return [namespace, scope, sessionId, key];
}
