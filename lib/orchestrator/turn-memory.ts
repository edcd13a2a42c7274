import { Logger } from '@nestjs/common';
import { traceOf } from '../common/error-trace.js';
import { deepFreeze, type JsonValue, toJson } from '../common/json.js';
import { hashed } from '../common/log-id.js';
import { type MessageDraft } from '../ledger/message.js';
import { type Session } from '../ledger/session.js';
import { type Turn } from '../ledger/turn.js';
import { memoryKey, type MemoryPort, type MemoryQuery, type MemoryScope } from './memory-port.js';

const logger = new Logger('TurnMemory');

/** A turn and the memory of its orchestrator. */
export class TurnMemory {
  constructor(
    private readonly memory: MemoryPort,
    private readonly memoryScope: MemoryScope,
    private readonly turn: Turn,
    private readonly session: Session,
  ) {}

  /** @throws what the memory throws; StateSerializationError for what is no JSON */
  async recall(): Promise<readonly JsonValue[]> {
    return deepFreeze(toJson(await this.memory.recall(this.query()), 'memories')) as readonly JsonValue[];
  }

  /** Never rejects: the turn has settled. */
  async remember(reply: string | null, messages: readonly MessageDraft[]): Promise<void> {
    try {
      await this.memory.remember({ ...this.query(), reply, messages: deepFreeze(messages) });
    } catch (error) {
      logger.error(`Turn ${hashed(this.turn.id)} has settled, and the memory did not take it.`, traceOf(error));
    }
  }

  private query(): MemoryQuery {
    const { id, sessionId, request } = this.turn;
    const scope = memoryKey(this.memoryScope, deepFreeze(this.session));
    return { scope, sessionId, turnId: id, input: deepFreeze(request.input) };
  }
}
