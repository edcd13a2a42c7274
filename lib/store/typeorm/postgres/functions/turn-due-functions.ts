export const TURN_DUE_FUNCTIONS: readonly string[] = [
  // Lanes to ring, the most overdue first, each put off for a while that doubles until somebody claims. Those that
  // somebody works on at this moment are passed over.
  `CREATE FUNCTION {due_v1}(args json) RETURNS json LANGUAGE plpgsql SET enable_seqscan = off AS $$
  DECLARE
    at bigint := {now_v1}();
    offered json;
  BEGIN
    IF {mode_of_all_v1}() = 'paused' THEN RETURN '[]'; END IF;
    WITH due AS (
      SELECT session_id, attention_at, offers FROM {lane}
      WHERE attention_at <= at ORDER BY attention_at LIMIT (args ->> 'limit')::bigint FOR UPDATE SKIP LOCKED
    ), put_off AS (
      UPDATE {lane} AS lane SET attention_at = at + LEAST(1000 * 2 ^ LEAST(due.offers, 10), 5000), offers = due.offers + 1
      FROM due WHERE lane.session_id = due.session_id
    )
    SELECT json_agg(due.session_id ORDER BY due.attention_at) INTO offered FROM due;
    RETURN COALESCE(offered, '[]');
  END $$`,
];
