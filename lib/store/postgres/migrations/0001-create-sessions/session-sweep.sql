-- Operations on many sessions. Sweeps skip a session that is locked now, so they share work with other sweeps: the next
-- sweep processes it. Only a removal waits: for writes to its documents and for sweeps of its turns. Neither waits for a
-- lane or session, so sweeps cannot deadlock. They read an index in its order and only as far as needed; other plans are
-- disabled.

CREATE FUNCTION {suspend_stale_v1}(args json) RETURNS json LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  given record;
  now bigint := {now_v1}();
  stale text[];
  result json;
BEGIN
  SELECT * INTO given FROM json_to_record(args) AS arg(idle_ms bigint, max_sessions bigint);
  stale := ARRAY(
    SELECT id FROM {session} WHERE state = 'active' AND last_activity_at < now - given.idle_ms
    ORDER BY last_activity_at LIMIT given.max_sessions FOR UPDATE SKIP LOCKED
  );
  WITH suspended AS (
    UPDATE {session} SET state = 'suspended', state_changed_at = now, version = version + 1
    WHERE id = ANY(stale) RETURNING *
  )
  SELECT coalesce(json_agg(row_to_json(suspended) ORDER BY last_activity_at), '[]') INTO result FROM suspended;
  RETURN result;
END $$;

CREATE FUNCTION {expire_stale_v1}(args json) RETURNS json
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
DECLARE
  given record;
  now bigint := {now_v1}();
  idle_before bigint;
  made_before bigint;
  candidate text;
  locked {session};
  changes json[] := '{}'::json[];
BEGIN
  SELECT * INTO given FROM json_to_record(args) AS arg(idle_ms bigint, max_ms bigint, max_sessions bigint);
  idle_before := now - given.idle_ms;
  made_before := now - given.max_ms;
  FOR candidate IN
    (SELECT id FROM {session} WHERE state = 'suspended' AND last_activity_at < idle_before ORDER BY last_activity_at)
    UNION ALL
    (SELECT id FROM {session} WHERE state = 'created' AND last_activity_at < idle_before ORDER BY last_activity_at)
    UNION ALL
    (SELECT id FROM {session} WHERE state <> 'expired' AND created_at < made_before ORDER BY created_at)
  LOOP
    EXIT WHEN cardinality(changes) >= given.max_sessions;
    locked := {lock_idle_session_v1}(candidate);
    IF (locked.state IN ('created', 'suspended') AND locked.last_activity_at < idle_before)
      OR (locked.state <> 'expired' AND locked.created_at < made_before)
    THEN
      changes := changes || {expire_locked_session_v1}(locked, now);
    END IF;
  END LOOP;
  RETURN array_to_json(changes);
END $$;

CREATE FUNCTION {purge_expired_v1}(args json) RETURNS json
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
DECLARE
  given record;
  before bigint;
  candidate text;
  locked {session};
  purged text[] := '{}'::text[];
BEGIN
  SELECT * INTO given FROM json_to_record(args) AS arg(older_than_ms bigint, max_sessions bigint);
  before := {now_v1}() - given.older_than_ms;
  FOR candidate IN
    SELECT id FROM {session} WHERE state = 'expired' AND state_changed_at < before ORDER BY state_changed_at
  LOOP
    EXIT WHEN cardinality(purged) >= given.max_sessions;
    locked := {lock_session_unless_busy_v1}(candidate);
    IF locked.state = 'expired' AND locked.state_changed_at < before THEN
      PERFORM {remove_session_v1}(candidate);
      purged := purged || candidate;
    END IF;
  END LOOP;
  RETURN array_to_json(purged);
END $$;

-- Helpers of the functions above.

-- Returns a session and its lane, or NULL if another transaction has locked one of them.
CREATE FUNCTION {lock_session_unless_busy_v1}(of_session text) RETURNS {session} LANGUAGE plpgsql AS $$
DECLARE
  locked {session};
BEGIN
  PERFORM 1 FROM {lane} WHERE session_id = of_session FOR UPDATE SKIP LOCKED;
  IF FOUND THEN
    SELECT * INTO locked FROM {session} WHERE id = of_session FOR UPDATE SKIP LOCKED;
  END IF;
  RETURN locked;
END $$;

-- Returns the same for a session without open turns.
CREATE FUNCTION {lock_idle_session_v1}(of_session text) RETURNS {session} LANGUAGE plpgsql AS $$
DECLARE
  locked {session};
BEGIN
  PERFORM 1 FROM {lane} WHERE session_id = of_session AND depth = 0 FOR UPDATE SKIP LOCKED;
  IF FOUND THEN
    SELECT * INTO locked FROM {session} WHERE id = of_session FOR UPDATE SKIP LOCKED;
  END IF;
  RETURN locked;
END $$;
