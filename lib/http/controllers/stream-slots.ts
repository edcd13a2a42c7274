import { type ServerResponse } from 'node:http';
import { type Session } from '../../ledger/session.js';
import { ProcessLimitError } from '../../ledger/turn.errors.js';
import { isClosed, onceClosed } from '../../turn/open-responses.js';

/** Limits the streams per principal in this process (FIX-50). */
export class StreamSlots {
  private readonly taken = new Map<string, number>();

  constructor(private readonly maxPerPrincipal: number) {}

  /**
   * Acquires a slot of a user, for example the owner of a session, until the response ends.
   * @throws ProcessLimitError (`TOO_MANY_STREAMS`)
   */
  take({ workspaceId, userId }: Pick<Session, 'workspaceId' | 'userId'>, response: ServerResponse): void {
    if (isClosed(response)) return;
    const owner = JSON.stringify([workspaceId, userId]);
    const taken = this.taken.get(owner) ?? 0;
    if (taken >= this.maxPerPrincipal) throw new ProcessLimitError('TOO_MANY_STREAMS', this.maxPerPrincipal);
    this.taken.set(owner, taken + 1);
    onceClosed(response, () => this.release(owner));
  }

  private release(owner: string): void {
    const left = (this.taken.get(owner) ?? 0) - 1;
    if (left > 0) this.taken.set(owner, left);
    else this.taken.delete(owner);
  }
}
