import { type Turn } from 'nestjs-agent-sessions';
import { type WorkerNote } from './worker-notes.service.js';

/** A turn as the API shows it. */
export interface TurnView extends Pick<
  Turn,
  'id' | 'position' | 'status' | 'failures' | 'lost' | 'turnIndex' | 'settledAt'
> {
  readonly reply: string | null;
  /** Of an answered turn: who did each of its steps. */
  readonly doneBy: readonly string[];
  /** Of a running turn: who began its latest attempt. */
  readonly worker: { readonly name: string; readonly pid: number } | null;
}

export function toView(turn: Turn, note: WorkerNote | null): TurnView {
  const { id, position, status, failures, lost, turnIndex, settledAt, reply } = turn;
  const { doneBy = [] } = (reply?.data ?? {}) as { doneBy?: string[] };
  const worker = status === 'running' && note?.turnId === id ? { name: note.name, pid: note.pid } : null;
  return { id, position, status, failures, lost, turnIndex, settledAt, reply: reply?.text ?? null, doneBy, worker };
}
