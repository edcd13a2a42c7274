import { type ServerResponse } from 'node:http';
import { type Session } from '../../ledger/session.js';
import { ProcessLimitError } from '../../ledger/turn.errors.js';

/** Limits the streams per principal in this process (FIX-50). */
export class StreamSlots {
  private readonly taken = new Map<string, number>();

  constructor(private readonly maxPerPrincipal: number) {}

  /**
   * Acquires a slot of a user, for example the owner of a session, until the response ends.
   * @throws ProcessLimitError (`TOO_MANY_STREAMS`)
   */
  take({ workspaceId, userId }: Pick<Session, 'workspaceId' | 'userId'>, response: ServerResponse): void {
    const { socket } = response.req;
    // The client has disconnected, so no close event follows.
    if (response.destroyed || socket.destroyed) return;
    const owner = JSON.stringify([workspaceId, userId]);
    const taken = this.taken.get(owner) ?? 0;
    if (taken >= this.maxPerPrincipal) throw new ProcessLimitError('TOO_MANY_STREAMS', this.maxPerPrincipal);
    this.taken.set(owner, taken + 1);
    const end = (): void => {
      response.off('close', end);
      socket.off('close', end);
      this.release(owner);
    };
    response.once('close', end);
    // A pipelined response has no socket while earlier ones are sent, and no close event if the connection ends first.
    if (!response.socket) socket.once('close', end);
  }

  private release(owner: string): void {
    const left = (this.taken.get(owner) ?? 0) - 1;
    if (left > 0) this.taken.set(owner, left);
    else this.taken.delete(owner);
  }
}
