import { DocumentVersions } from '../../ledger/document-versions.js';
import { type LaneViewRow, type LeaseRow, type TombstoneRow, type TurnRow } from '../core/rows.js';
import { type CoreDatabase, type Transaction } from '../core/tables.js';
import { HintEmitter } from '../core/hint-emitter.js';
import { Journal, MemoryTable } from '../core/memory-table.js';
import { MemoryCheckpoints, MemoryDocuments, MemoryMessages } from '../core/memory-contents.js';
import { MemorySessions } from '../core/memory-sessions.js';
import { MemoryLanes, MemorySignals, MemorySteps, MemoryTurnEvents, MemoryTurns } from '../core/memory-turns.js';

/** The tables in the process's memory; gone with it. A transaction that throws is undone from its journal. */
export class MemoryDatabase implements CoreDatabase {
  private readonly journal = new Journal();
  private readonly hints = new HintEmitter();
  private readonly versions = new DocumentVersions();
  private readonly lanes = new MemoryLanes(this.journal);
  private readonly sessions = new MemorySessions(this.journal, (id) => (this.lanes.get(id)?.depth ?? 0) > 0);
  private readonly turns = new MemoryTurns(this.journal);
  private readonly steps = new MemorySteps(this.journal);
  private readonly signals = new MemorySignals(this.journal);
  private readonly events = new MemoryTurnEvents(this.journal);
  private readonly checkpoints = new MemoryCheckpoints(this.journal);
  private readonly messages = new MemoryMessages(this.journal);
  private readonly documents = new MemoryDocuments(this.journal);
  private readonly leases = new MemoryTable<LeaseRow, string>(this.journal, (key) =>
    typeof key === 'string' ? key : key.name,
  );
  private readonly tombstones = new MemoryTable<TombstoneRow, string>(this.journal, (key) =>
    typeof key === 'string' ? key : key.sessionId,
  );

  /** @param clock milliseconds since 1970; read at each operation */
  constructor(private readonly clock: () => number) {}

  async write<T>(work: (tx: Transaction) => T): Promise<T> {
    const changed = new Set<string>();
    const result = this.run(() => work(this.transaction(changed)));
    for (const turnId of changed) this.hints.tell(turnId);
    return result;
  }

  read<T>(work: (tx: Transaction) => T): Promise<T> {
    return this.write(work);
  }

  onChanged(listener: (turnId: string) => void): () => void {
    return this.hints.subscribe(listener);
  }

  private run<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      this.journal.rollBack();
      throw error;
    } finally {
      this.journal.clear();
    }
  }

  private transaction(changed: Set<string>): Transaction {
    const { sessions, lanes, turns, steps, signals, events, checkpoints, messages, documents, leases, tombstones } =
      this;
    const now = Math.floor(this.clock());
    return {
      now,
      nextVersion: (before) => this.versions.next(before, now),
      sessions,
      lanes,
      turns,
      steps,
      signals,
      events,
      checkpoints,
      messages,
      documents,
      leases,
      tombstones,
      viewLane: (sessionId) => this.viewLane(sessionId),
      viewOpenLanes: (after, limit) => this.turns.openSessions(after, limit).map((id) => this.viewLane(id)),
      deleteSession: (sessionId) => this.deleteSession(sessionId),
      deleteTurns: (settledBefore, limit) => this.deleteTurns(this.turns.settledBefore(settledBefore, limit)),
      deleteExpiredEvents: (limit) => this.deleteEvents(this.turns.withExpiredEvents(now, limit)),
      changed: (turnId) => changed.add(turnId),
    };
  }

  private viewLane(sessionId: string): LaneViewRow {
    const lane = this.lanes.get(sessionId);
    const [head, next] = this.turns.firstOpen(sessionId, 2);
    return {
      sessionId,
      mode: lane?.mode ?? null,
      depth: lane?.depth ?? 0,
      holder: lane?.holder ?? null,
      leaseUntil: lane?.leaseUntil ?? null,
      turnId: head?.id ?? null,
      orchestrator: head?.orchestrator ?? null,
      status: head?.status ?? null,
      failures: head?.failures ?? null,
      lost: head?.lost ?? null,
      cancelMode: head?.cancelMode ?? null,
      waitSignal: head?.waitSignal ?? null,
      waitUntil: head?.waitUntil ?? null,
      acceptedAt: head?.acceptedAt ?? null,
      startedAt: head?.startedAt ?? null,
      dueAt: head?.dueAt ?? null,
      nextAcceptedAt: next?.acceptedAt ?? null,
    };
  }

  private deleteSession(sessionId: string): void {
    this.deleteTurns(this.turns.ofSession(sessionId));
    for (const checkpoint of this.checkpoints.ofSession(sessionId)) this.checkpoints.delete(checkpoint);
    for (const message of this.messages.ofSession(sessionId)) this.messages.delete(message);
    for (const document of this.documents.ofSession(sessionId)) this.documents.delete(document);
    this.lanes.delete(sessionId);
    this.sessions.delete(sessionId);
  }

  private deleteTurns(turns: readonly TurnRow[]): number {
    for (const { id } of turns) {
      for (const step of this.steps.ofTurn(id)) this.steps.delete(step);
      for (const signal of this.signals.ofTurn(id)) this.signals.delete(signal);
      for (const batch of this.events.ofTurn(id)) this.events.delete(batch);
      this.turns.delete(id);
    }
    return turns.length;
  }

  private deleteEvents(turns: readonly TurnRow[]): number {
    for (const { id } of turns) {
      for (const batch of this.events.ofTurn(id)) this.events.delete(batch);
      this.turns.update(id, { eventTtl: null });
    }
    return turns.length;
  }
}
