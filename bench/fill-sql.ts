import { FIRST_HASH, FIRST_KEY, ORCHESTRATOR, type PopulationSql, VERSION } from './population.js';

const HOUR_MS = 3_600_000;

/** The rows of a population, one statement per table, over numbers `n` from a series of the dialect. */
export function fillStatements(sql: PopulationSql, filledAt: number, numbers: string): readonly string[] {
  const last = `(${sql.lastActivityAt})`;
  const changed = `(CASE WHEN ${sql.state} = 'active' THEN ${last} ELSE ${last} + ${HOUR_MS} END)`;
  const turn = `'turn-' || ${sql.id}`;
  const fence = filledAt + 1;
  return [
    `agent_session SELECT ${sql.id}, ${sql.userId}, ${sql.workspaceId}, ${sql.state}, ${last} - ${HOUR_MS}, ${last}, ${changed},
      ${sql.surfaces}, ${sql.metadata}, 3 FROM ${numbers}`,
    `agent_session_surface SELECT 'phone-' || n, ${sql.userId}, ${sql.id} FROM ${numbers}`,
    `agent_session_surface SELECT 'mail-' || n, ${sql.userId}, ${sql.id} FROM ${numbers} WHERE n % 2 = 1`,
    `agent_lane (session_id, next_position, depth, fence, offers) SELECT ${sql.id}, 2, 0, ${fence}, 0 FROM ${numbers}`,
    `agent_turn (id, session_id, position, orchestrator, version, request, attributes, idempotency_key, request_hash, status,
      failures, lost, lost_since_step, turn_index, reply, accepted_at, started_at, settled_at, settled_fence)
      SELECT ${turn}, ${sql.id}, 1, '${ORCHESTRATOR}', '${VERSION}', ${sql.request}, '{}', '${FIRST_KEY}', '${FIRST_HASH}',
      'awaiting-input', 0, 0, 0, 0, ${sql.reply}, ${last}, ${last}, ${last}, ${fence} FROM ${numbers}`,
    `agent_checkpoint SELECT '${ORCHESTRATOR}', ${sql.id}, 0, ${turn}, NULL, ${sql.checkpoint}, '["status"]', 'signature',
      '${VERSION}', 0, ${last}, NULL FROM ${numbers}`,
    `agent_message SELECT ${sql.id}, 1, ${turn} || '.0', ${turn}, '${ORCHESTRATOR}', 'user', ${sql.question}, ${last}
      FROM ${numbers}`,
    `agent_message SELECT ${sql.id}, 2, ${turn} || '.1', ${turn}, '${ORCHESTRATOR}', 'assistant', ${sql.answer}, ${last}
      FROM ${numbers}`,
  ].map((rows) => `INSERT INTO ${rows}`);
}
