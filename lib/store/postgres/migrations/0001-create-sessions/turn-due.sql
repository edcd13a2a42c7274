-- Returns lanes to notify, the most overdue first. include_offered adds postponed lanes, the longest waiting first. Each
-- returned lane is postponed by a delay that doubles until a worker claims it or renews its lease.
-- Locked lanes are skipped.
CREATE FUNCTION {due_v1}(args json) RETURNS json LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  at bigint := {now_v1}();
  offered json;
BEGIN
  IF {mode_of_all_v1}() = 'paused' THEN RETURN '[]'::json; END IF;
  IF (args ->> 'include_offered')::boolean THEN
    WITH due AS (
      SELECT
        session_id, attention_at, offers,
        CASE WHEN offers > 0 THEN first_attention_at ELSE attention_at END AS first_at
      FROM {lane} WHERE attention_at <= at + 5000 AND (attention_at <= at OR offers > 0)
      ORDER BY first_at LIMIT (args ->> 'limit')::bigint FOR UPDATE SKIP LOCKED
    ), put_off AS (
      UPDATE {lane} AS lane SET
        attention_at = at + LEAST(1000 * 2 ^ LEAST(due.offers, 10), 5000), offers = due.offers + 1,
        first_attention_at = due.first_at
      FROM due WHERE lane.session_id = due.session_id
    )
    SELECT json_agg(session_id ORDER BY first_at) INTO offered FROM due;
  ELSE
    WITH due AS (
      SELECT
        session_id, attention_at, offers,
        CASE WHEN offers > 0 THEN first_attention_at ELSE attention_at END AS first_at
      FROM {lane} WHERE attention_at <= at
      ORDER BY attention_at LIMIT (args ->> 'limit')::bigint FOR UPDATE SKIP LOCKED
    ), put_off AS (
      UPDATE {lane} AS lane SET
        attention_at = at + LEAST(1000 * 2 ^ LEAST(due.offers, 10), 5000), offers = due.offers + 1,
        first_attention_at = due.first_at
      FROM due WHERE lane.session_id = due.session_id
    )
    SELECT json_agg(session_id ORDER BY attention_at) INTO offered FROM due;
  END IF;
  RETURN COALESCE(offered, '[]');
END $$;
