import { Logger } from '@nestjs/common';
import { traceOf } from '../common/error-trace.js';
import { deepFreeze, type JsonValue, toJson } from '../common/json.js';
import { hashed } from '../common/log-id.js';
import { type MessageDraft } from '../conversation/message.js';
import { type Session } from '../session/session.js';
import { type Turn } from '../turn/turn.js';
import { memoryKey, type MemoryQuery } from './memory-port.js';
import { type OrchestratorDefinition } from './orchestrator.js';

/** A turn and the memory of its orchestrator, when it has one. */
export class TurnMemory {
  private readonly logger = new Logger(TurnMemory.name);

  constructor(
    private readonly definition: Pick<OrchestratorDefinition, 'memory' | 'memoryScope'>,
    private readonly turn: Turn,
    private readonly session: Session,
  ) {}

  /** @throws what the memory throws; StateSerializationError for what is no JSON */
  async recall(): Promise<readonly JsonValue[]> {
    const { memory } = this.definition;
    if (!memory) return [];
    return deepFreeze(toJson(await memory.recall(this.query()), 'memories')) as readonly JsonValue[];
  }

  /** Never rejects: the turn has settled. */
  async remember(reply: string | null, messages: readonly MessageDraft[]): Promise<void> {
    const { memory } = this.definition;
    if (!memory) return;
    try {
      await memory.remember({ ...this.query(), reply, messages });
    } catch (error) {
      this.logger.error(`Turn ${hashed(this.turn.id)} has settled, and the memory did not take it.`, traceOf(error));
    }
  }

  private query(): MemoryQuery {
    const { id, sessionId, request } = this.turn;
    const scope = memoryKey(this.definition.memoryScope, this.session);
    return { scope, sessionId, turnId: id, input: request.input };
  }
}
