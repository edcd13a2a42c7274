import { type DataSource } from 'typeorm';
import { type SqlPlace } from '../../lib/store/sql/sql-place.js';

export const MANY = 50_000;
/** Number of users. Each has one session in every state, and a second active one. */
export const USERS = MANY / 5;

/** Session `p-7` of `user-7` has the surfaces `app`, like all, and `phone-7`. Higher numbers are older. */
const FILL: readonly string[] = [
  `INSERT INTO {session} SELECT
     'p-' || n, 'user-' || n % ${USERS}, 'space', (ARRAY['created', 'active', 'suspended', 'expired', 'active'])[(1 + n / ${USERS})::int],
     now.ms - 60000 * n, now.ms - 60000 * n, now.ms - 60000 * n, '["app","phone-' || n || '"]', '{"\\"n\\"":"' || n || '"}', 1
   FROM numbers, now`,
  `INSERT INTO {session_surface} SELECT surface, 'user-' || n % ${USERS}, 'p-' || n FROM numbers, unnest(ARRAY['app', 'phone-' || n]) AS surface`,
  `INSERT INTO {lane} (session_id, next_position, depth, fence, attention_at, offers)
   SELECT 'p-' || n, 2, 0, 1, CASE WHEN n % 500 = 0 THEN now.ms END, 0 FROM numbers, now`,
  `INSERT INTO {turn} (id, session_id, position, orchestrator, version, request, attributes, idempotency_key, status,
     failures, lost, lost_since_step, accepted_at, settled_at, event_ttl)
   SELECT 'turn-' || n, 'p-' || n, 1, 'desk', '1', '{}', '{}', 'key', 'completed', 0, 0, 0, now.ms, now.ms,
     CASE WHEN n % 2 = 0 THEN 0 END FROM numbers, now`,
  `INSERT INTO {turn_event} SELECT 'turn-' || n, batch, 1, batch, '[{"type":"delta","data":1}]'
   FROM numbers, generate_series(1, 3) AS batch`,
  `INSERT INTO {step} (turn_id, id, step_key, value)
   SELECT 'turn-' || n, repeat('0', 64), '["step",0,"answer","","look up",0]', '1' FROM numbers`,
  `INSERT INTO {signal} SELECT 'turn-' || n, 'go', '1' FROM numbers`,
  `INSERT INTO {checkpoint} SELECT 'desk', 'p-' || n, 0, 'turn-' || n, NULL, '{}', '[]', '', '1', 0, now.ms, NULL FROM numbers, now`,
  `INSERT INTO {message} SELECT 'p-' || n, 1, 'message', 'turn-' || n, 'desk', 'user', '{"content":"hi"}', now.ms FROM numbers, now`,
  `INSERT INTO {document} (namespace, scope, session_id, key, value, batches, version, created_at, accessed_at, expires_at)
   SELECT 'n', 'c', 'p-' || n, 'k', '1', '[]', 1, 0, now.ms - n, CASE WHEN n % 2 = 0 THEN now.ms END FROM numbers, now`,
  `INSERT INTO {lease} SELECT 'job-' || n, 'me', 1, 0 FROM numbers`,
  `INSERT INTO {tombstone} SELECT 'gone-' || n, 0 FROM numbers`,
];

/** Fills the tables of a PostgreSQL store, and updates its statistics. */
export async function fillWithSessions(dataSource: DataSource, place: SqlPlace): Promise<void> {
  for (const statement of FILL) {
    const into = /\{(\w+)\}/.exec(statement)?.[0] ?? '';
    const given = `WITH numbers AS (SELECT generate_series(0::bigint, ${MANY - 1}) AS n), now AS (SELECT {now_v1}() AS ms)`;
    await dataSource.query(place.fill(`${given} ${statement}`));
    await dataSource.query(place.fill(`ANALYZE ${into}`));
  }
}
