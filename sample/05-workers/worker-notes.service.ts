import { Inject, Injectable } from '@nestjs/common';
import { SESSIONS_ADAPTER, type SessionsAdapter, type TurnContext } from 'nestjs-agent-sessions';

export interface WorkerNote {
  readonly turnId: string;
  readonly name: string;
  readonly pid: number;
}

/** The name of this process. */
export const SELF = { name: process.env.PROCESS_NAME ?? `process ${process.pid}`, pid: process.pid };

/** Stores which worker started a session's latest attempt, for display only. The lane's fence decides who may write. */
@Injectable()
export class WorkerNotes {
  constructor(@Inject(SESSIONS_ADAPTER) private readonly store: SessionsAdapter) {}

  async write({ id, sessionId }: Pick<TurnContext, 'id' | 'sessionId'>): Promise<void> {
    await this.store.state.set(addressOf(sessionId), { turnId: id, ...SELF }, { ttlMs: 3_600_000 });
  }

  async read(sessionId: string): Promise<WorkerNote | null> {
    const document = await this.store.state.get(addressOf(sessionId));
    return document && (document.value as unknown as WorkerNote);
  }
}

function addressOf(sessionId: string) {
  return { namespace: 'sample-workers', scope: '', sessionId, key: 'worker' };
}
