import { type Turn } from 'nestjs-agent-sessions';
import { type WorkerNote } from './worker-notes.service.js';

/** A turn in the form of the API. */
export interface TurnView extends Pick<
  Turn,
  'id' | 'position' | 'status' | 'failures' | 'lost' | 'turnIndex' | 'settledAt'
> {
  readonly reply: string | null;
  /** The worker of each step, for an answered turn. */
  readonly doneBy: readonly string[];
  /** The worker of the latest attempt, for a running turn. */
  readonly worker: { readonly name: string; readonly pid: number } | null;
}

export function toView(turn: Turn, note: WorkerNote | null): TurnView {
  const { id, position, status, failures, lost, turnIndex, settledAt, reply } = turn;
  const { doneBy = [] } = (reply?.data ?? {}) as { doneBy?: string[] };
  const worker = status === 'running' && note?.turnId === id ? { name: note.name, pid: note.pid } : null;
  return { id, position, status, failures, lost, turnIndex, settledAt, reply: reply?.text ?? null, doneBy, worker };
}
