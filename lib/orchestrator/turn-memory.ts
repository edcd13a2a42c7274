import { Logger } from '@nestjs/common';
import { traceOf } from '../common/error-trace.js';
import { deepFreeze, type JsonValue, toJson } from '../common/json.js';
import { loggedId } from '../common/log-details.js';
import { type MessageDraft } from '../ledger/message.js';
import { type Session } from '../ledger/session.js';
import { type Turn } from '../ledger/turn.js';
import { memoryKey, type MemoryPort, type MemoryQuery, type MemoryScope } from './memory-port.js';

const logger = new Logger('TurnMemory');

/** The memory of an orchestrator, for one turn. */
export class TurnMemory {
  constructor(
    private readonly memory: MemoryPort,
    private readonly memoryScope: MemoryScope,
    private readonly turn: Turn,
    private readonly session: Session,
  ) {}

  /** @throws what the memory throws; StateSerializationError if the memories are not JSON */
  async recall(): Promise<readonly JsonValue[]> {
    return deepFreeze(toJson(await this.memory.recall(this.query()), 'memories')) as readonly JsonValue[];
  }

  /** Never rejects, because the turn has settled. */
  async remember(reply: string | null, messages: readonly MessageDraft[]): Promise<void> {
    try {
      await this.memory.remember({ ...this.query(), reply, messages: deepFreeze(messages) });
    } catch (error) {
      logger.error(
        `The memory failed to store turn ${loggedId(this.turn.id)}, which has settled. It is not retried.`,
        traceOf(error),
      );
    }
  }

  private query(): MemoryQuery {
    const { id, sessionId, request } = this.turn;
    const scope = memoryKey(this.memoryScope, deepFreeze(this.session));
    return { scope, sessionId, turnId: id, input: deepFreeze(request.input) };
  }
}
