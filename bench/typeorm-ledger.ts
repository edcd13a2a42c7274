import {
  type Checkpoint,
  type JsonObject,
  type SessionsAdapter,
  type Turn,
  type TurnReply,
} from 'nestjs-agent-sessions';
import {
  type AcceptedTurn,
  type AcceptTurn,
  type ClaimedTurn,
  type ClaimRequest,
  type SettledTurn,
  type TurnHold,
  type TurnRequest,
  type TurnSettlement,
} from 'nestjs-agent-sessions/adapter';
import { sessionsEntities } from 'nestjs-agent-sessions/typeorm';
import { DataSource, type EntityManager, IsNull } from 'typeorm';
import { WrongAnswerError } from './wrong-answer.error.js';

interface LaneRow {
  readonly sessionId: string;
  readonly nextPosition: number;
  readonly depth: number;
  readonly fence: number;
  readonly runningTurn: string | null;
  readonly leaseUntil: number | null;
}

interface TurnRow {
  readonly id: string;
  readonly sessionId: string;
  readonly position: number;
  readonly orchestrator: string;
  readonly version: string;
  readonly request: string;
  readonly attributes: string;
  readonly status: Turn['status'];
  readonly failures: number;
  readonly lost: number;
  readonly lostSinceStep: number;
  readonly turnIndex: number | null;
  readonly reply: string | null;
  readonly acceptedAt: number;
  readonly startedAt: number | null;
  readonly settledAt: number | null;
}

interface SessionRow {
  readonly id: string;
  readonly userId: string;
  readonly state: 'created' | 'active';
  readonly createdAt: number;
  readonly lastActivityAt: number;
  readonly version: number;
}

interface CheckpointRow {
  readonly orchestrator: string;
  readonly sessionId: string;
  readonly turnIndex: number;
  readonly turnId: string;
  readonly parent: number | null;
  readonly state: string;
  readonly lastRoute: string;
  readonly signature: string;
  readonly version: string;
  readonly summarizedThrough: number;
  readonly savedAt: number;
}

const LOCKED = { lock: { mode: 'pessimistic_write' } } as const;
const TURN = 'agent_turn';
const LANE = 'agent_lane';
const SESSION = 'agent_session';
const CHECKPOINT = 'agent_checkpoint';
const MESSAGE = 'agent_message';

/**
 * The operations of a turn as ordinary TypeORM transactions over the same tables: rows are found, locked, inserted and updated one by one.
 * It implements only what the turns of PRF-02 need, and rejects nothing.
 */
class TypeormLedger {
  constructor(
    private readonly dataSource: DataSource,
    private readonly ended: (turnId: string, turn: Turn) => void,
  ) {}

  accept(request: AcceptTurn): Promise<AcceptedTurn> {
    return this.dataSource.transaction(async (manager) => {
      const { id, sessionId, orchestrator, version } = request;
      const lane = await lockedLane(manager, sessionId);
      const known = await manager.findOneBy<TurnRow>(TURN, { id });
      if (known) return { turn: toTurn(known), duplicate: true, notify: known.status === 'queued' };
      await manager.findOneByOrFail<SessionRow>(SESSION, { id: sessionId });
      const turn: TurnRow = {
        id,
        sessionId,
        position: lane.nextPosition,
        orchestrator,
        version,
        request: JSON.stringify(request.request),
        attributes: JSON.stringify(request.attributes),
        status: 'queued',
        failures: 0,
        lost: 0,
        lostSinceStep: 0,
        turnIndex: null,
        reply: null,
        acceptedAt: Date.now(),
        startedAt: null,
        settledAt: null,
      };
      await manager.insert(TURN, turn);
      await manager.update(
        LANE,
        { sessionId },
        { nextPosition: lane.nextPosition + 1, depth: lane.depth + 1, attentionAt: turn.acceptedAt + 1000 },
      );
      const accepted = { turn: toTurn(turn), duplicate: false } as const;
      const claimed = request.claim && (await claimHead(manager, sessionId, request.claim));
      // In an idle lane, the new turn is the head.
      return claimed ? { ...accepted, notify: false, claimed } : { ...accepted, notify: lane.depth === 0 };
    });
  }

  claim(sessionId: string, request: ClaimRequest): Promise<ClaimedTurn | null> {
    return this.dataSource.transaction((manager) => claimHead(manager, sessionId, request));
  }

  async settle(hold: TurnHold, settlement: TurnSettlement, next?: ClaimRequest): Promise<SettledTurn> {
    const settled = await this.dataSource.transaction((manager) => settleTurn(manager, hold, settlement, next));
    this.ended(hold.turnId, settled.turn);
    return settled;
  }
}

async function claimHead(
  manager: EntityManager,
  sessionId: string,
  request: ClaimRequest,
): Promise<ClaimedTurn | null> {
  const lane = await lockedLane(manager, sessionId);
  if (lane.depth === 0 || lane.runningTurn !== null) return null;
  const head = await manager.findOneOrFail<TurnRow>(TURN, {
    where: { sessionId, settledAt: IsNull() },
    order: { position: 'ASC' },
  });
  const now = Date.now();
  const leaseUntil = now + request.leaseMs;
  const fence = Math.max(lane.fence + 1, now);
  const running = { status: 'running', startedAt: now } as const;
  await manager.update(TURN, { id: head.id }, running);
  await manager.update(
    LANE,
    { sessionId },
    { fence, runningTurn: head.id, holder: request.holder, leaseUntil, attentionAt: leaseUntil, offers: 0 },
  );
  const session = await manager.findOneByOrFail<SessionRow>(SESSION, { id: sessionId });
  const checkpoint = await latestCheckpoint(manager, head.orchestrator, sessionId);
  const steps = await manager.findBy('agent_step', { turnId: head.id });
  const names = request.documents?.[head.orchestrator] ?? [];
  for (const name of names) await expectNothing(manager, { ...name, sessionId });
  if (steps.length > 0) throw new WrongAnswerError(`Turn ${head.id} has steps.`);
  return {
    hold: { sessionId, turnId: head.id, fence },
    turn: toTurn({ ...head, ...running }),
    session: toSession(session),
    checkpoint: checkpoint && toCheckpoint(checkpoint),
    history: [],
    steps: [],
    documents: names.map(() => null),
    epochs: {},
  };
}

async function settleTurn(
  manager: EntityManager,
  { sessionId, turnId, fence }: TurnHold,
  { status, reply, report, messages, checkpoint }: TurnSettlement,
  next?: ClaimRequest,
): Promise<SettledTurn> {
  const lane = await lockedLane(manager, sessionId);
  const turn = await manager.findOneByOrFail<TurnRow>(TURN, { id: turnId });
  if (lane.runningTurn !== turnId || lane.fence !== fence) throw new WrongAnswerError(`Turn ${turnId} is fenced.`);
  const now = Date.now();
  if (checkpoint) {
    const latest = await latestCheckpoint(manager, checkpoint.orchestrator, sessionId);
    if (checkpoint.turnIndex !== (latest?.turnIndex ?? -1) + 1) throw new WrongAnswerError('A checkpoint conflicts.');
    const { orchestrator, turnIndex, parent, signature, version, summarizedThrough } = checkpoint;
    await manager.insert(CHECKPOINT, {
      ...{ orchestrator, sessionId, turnIndex, turnId, parent, signature, version, summarizedThrough, savedAt: now },
      state: JSON.stringify(checkpoint.state),
      lastRoute: JSON.stringify(checkpoint.lastRoute),
    });
  }
  const last = await manager.maximum<{ sessionId: string; position: number }>(MESSAGE, 'position', { sessionId });
  await manager.insert(
    MESSAGE,
    messages.map(({ id, role, ...body }, at) => ({
      ...{ sessionId, position: Number(last ?? 0) + at + 1, id, turnId, role, createdAt: now },
      orchestrator: turn.orchestrator,
      body: JSON.stringify(body),
    })),
  );
  const session = await manager.findOneOrFail<SessionRow>(SESSION, { where: { id: sessionId }, ...LOCKED });
  const active = { state: 'active', lastActivityAt: now, version: session.version + 1 } as const;
  await manager.update(SESSION, { id: sessionId }, { ...active, stateChangedAt: now });
  const settled = { status, settledAt: now, reply: JSON.stringify(reply), turnIndex: checkpoint?.turnIndex ?? null };
  await manager.update(TURN, { id: turnId }, { ...settled, settledFence: fence, report: JSON.stringify(report) });
  const depth = lane.depth - 1;
  const rested = { runningTurn: null, holder: null, leaseUntil: null, attentionAt: depth > 0 ? now + 1000 : null };
  await manager.update(LANE, { sessionId }, { ...rested, depth });
  return {
    turn: toTurn({ ...turn, ...settled }),
    sessionChange: {
      session: toSession({ ...session, ...active }),
      previousState: session.state,
      changed: true,
    },
    next: next && depth > 0 ? await claimHead(manager, sessionId, next) : null,
    notify: false,
  };
}

function lockedLane(manager: EntityManager, sessionId: string): Promise<LaneRow> {
  return manager.findOneOrFail<LaneRow>(LANE, { where: { sessionId }, ...LOCKED });
}

function latestCheckpoint(
  manager: EntityManager,
  orchestrator: string,
  sessionId: string,
): Promise<CheckpointRow | null> {
  return manager.findOne<CheckpointRow>(CHECKPOINT, {
    where: { orchestrator, sessionId },
    order: { turnIndex: 'DESC' },
  });
}

/** The turns of this benchmark write none. */
async function expectNothing(manager: EntityManager, address: object): Promise<void> {
  if (await manager.findOneBy('agent_document', address)) throw new WrongAnswerError('There is a document.');
}

function toTurn(row: TurnRow): Turn {
  const { request, attributes, reply, turnIndex, acceptedAt, startedAt, settledAt, ...same } = row;
  return {
    ...same,
    request: JSON.parse(request) as TurnRequest,
    attributes: JSON.parse(attributes) as JsonObject,
    ...(turnIndex === null ? {} : { turnIndex }),
    ...(reply === null ? {} : { reply: JSON.parse(reply) as TurnReply }),
    acceptedAt: iso(acceptedAt),
    ...(startedAt === null ? {} : { startedAt: iso(startedAt) }),
    ...(settledAt === null ? {} : { settledAt: iso(settledAt) }),
  };
}

function toCheckpoint({ turnId, parent, state, lastRoute, savedAt, ...same }: CheckpointRow): Checkpoint {
  return {
    ...same,
    turnId,
    ...(parent === null ? {} : { parent }),
    state: JSON.parse(state) as JsonObject,
    lastRoute: JSON.parse(lastRoute) as string[],
    savedAt: iso(savedAt),
  };
}

function toSession({
  id,
  userId,
  state,
  createdAt,
  lastActivityAt,
  version,
}: SessionRow): ClaimedTurn['session'] & object {
  const blank = { attachedSurfaces: [], metadata: {} };
  return { ...blank, id, userId, state, version, createdAt: iso(createdAt), lastActivityAt: iso(lastActivityAt) };
}

function iso(time: number): string {
  return new Date(time).toISOString();
}

/** The adapter with the operations of this ledger. */
export async function openTypeormLedger(
  ours: SessionsAdapter,
  url: string,
): Promise<{ adapter: SessionsAdapter; close: () => Promise<void> }> {
  const dataSource = new DataSource({ type: 'mariadb', url, entities: sessionsEntities() });
  const listeners = new Set<(turnId: string, turn?: Turn) => void>();
  const ledger = new TypeormLedger(dataSource, (turnId, turn) => {
    for (const listener of listeners) listener(turnId, turn);
  });
  const adapter: SessionsAdapter = {
    ...ours,
    turns: Object.assign(ours.turns, {
      accept: ledger.accept.bind(ledger),
      claim: ledger.claim.bind(ledger),
      settle: ledger.settle.bind(ledger),
    }),
    changes: {
      subscribe: (listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    },
  };
  await dataSource.initialize();
  return { adapter, close: () => dataSource.destroy() };
}
