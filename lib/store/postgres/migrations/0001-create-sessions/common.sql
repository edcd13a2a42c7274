-- Shared functions. Callers pass the time: one operation uses one time, read after it has its locks.

-- Unlike now(), this advances in a transaction that waited for a lock.
CREATE FUNCTION {now_v1}() RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
$$;

-- Returns the next version of a document. After 0 it is the clock in microseconds, so that a recreated document never
-- reuses a version.
CREATE FUNCTION {next_version_v1}(before bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN before > 0 THEN before + 1 ELSE floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint END
$$;

-- Notifies all listening processes on commit.
CREATE FUNCTION {changed_v1}(turn_id text) RETURNS void LANGUAGE sql VOLATILE AS $$
  SELECT pg_notify({changed'}, turn_id)
$$;

-- Notifies the processes that listen for events of the turn. The channel's name contains a hash, because names are short.
CREATE FUNCTION {appended_v1}(turn_id text, last_offset bigint) RETURNS void LANGUAGE sql VOLATILE AS $$
  SELECT pg_notify({appended'} || '_' || left(encode(sha256(convert_to(turn_id, 'UTF8')), 'hex'), 20), last_offset::text)
$$;

-- Returns true if the lane did not exist.
CREATE FUNCTION {make_lane_v1}(of_session text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  -- The fence starts at the clock, so that a recreated lane never accepts an older worker.
  INSERT INTO {lane} (session_id, next_position, depth, fence, offers)
    VALUES (of_session, 1, 0, {now_v1}(), 0) ON CONFLICT DO NOTHING;
  RETURN FOUND;
END $$;

-- Locks a session's turns, messages and checkpoints. Call it first, before any read.
-- Returns NULL columns if the lane does not exist. Then nothing is locked, and the caller must not write.
CREATE FUNCTION {lock_lane_v1}(of_session text, make boolean) RETURNS {lane} LANGUAGE plpgsql AS $$
DECLARE
  lane {lane};
BEGIN
  LOOP
    SELECT * INTO lane FROM {lane} WHERE session_id = of_session FOR UPDATE;
    EXIT WHEN FOUND;
    IF make THEN
      PERFORM {make_lane_v1}(of_session);
    ELSE
      -- A lane that was deleted during the wait may have been recreated.
      EXIT WHEN NOT EXISTS (SELECT FROM {lane} WHERE session_id = of_session);
    END IF;
  END LOOP;
  RETURN lane;
END $$;

-- Rejects late writes to an erased session.
CREATE FUNCTION {is_erased_v1}(of_session text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  RETURN EXISTS (SELECT FROM {tombstone} WHERE session_id = of_session);
END $$;

-- Returns whether a session is not the required one: "required" contains its created_at and user_id; NULL: any session.
CREATE FUNCTION {is_other_session_v1}(session {session}, required json) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(
    session.created_at <> (required ->> 'created_at')::bigint OR session.user_id <> required ->> 'user_id',
    false
  )
$$;

-- Appends messages, a json array of { id, role, body }, to the log. Returns the rows as a json array.
CREATE FUNCTION {append_messages_v1}(of_session text, messages json, of_turn text, by_orchestrator text, at bigint)
RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  appended json;
BEGIN
  WITH last AS (
    SELECT COALESCE(max(position), 0) AS position FROM {message} WHERE session_id = of_session
  ), added AS (
    INSERT INTO {message} (session_id, position, id, turn_id, orchestrator, role, body, created_at)
    SELECT of_session, last.position + draft.index, draft.value ->> 'id', of_turn,
           CASE WHEN draft.value -> 'orchestrator' IS NULL THEN by_orchestrator ELSE draft.value ->> 'orchestrator' END,
           draft.value ->> 'role', draft.value ->> 'body', at
    FROM last, json_array_elements(messages) WITH ORDINALITY AS draft (value, index)
    RETURNING *
  )
  SELECT json_agg(row_to_json(added) ORDER BY added.position) INTO appended FROM added;
  RETURN COALESCE(appended, '[]');
END $$;

-- Returns the last messages of a log, after its first message if that is a system message. Reads only these rows.
CREATE FUNCTION {window_v1}(of_session text, size bigint) RETURNS json LANGUAGE plpgsql
SET enable_seqscan = off AS $$
DECLARE
  recent json;
BEGIN
  IF size IS NULL OR size <= 0 THEN RETURN '[]'::json; END IF;
  WITH cut AS (
    SELECT COALESCE(max(position), 0) - size AS position FROM {message} WHERE session_id = of_session
  ), shown AS (
    SELECT first.* FROM cut, {message} AS first
    WHERE first.session_id = of_session AND first.position = 1 AND first.role = 'system' AND cut.position >= 1
    UNION ALL
    SELECT * FROM {message}
    WHERE session_id = of_session AND position > (SELECT position FROM cut)
  )
  SELECT json_agg(row_to_json(shown) ORDER BY shown.position) INTO recent FROM shown;
  RETURN COALESCE(recent, '[]');
END $$;

-- Returns NULL columns without checkpoints. Without the setting, a planner without statistics may read and sort all rows.
CREATE FUNCTION {latest_checkpoint_v1}(of_orchestrator text, of_session text) RETURNS {checkpoint}
LANGUAGE plpgsql SET enable_sort = off AS $$
DECLARE
  latest {checkpoint};
BEGIN
  SELECT * INTO latest FROM {checkpoint}
    WHERE orchestrator = of_orchestrator AND session_id = of_session ORDER BY turn_index DESC LIMIT 1;
  RETURN latest;
END $$;

-- Returns whether the checkpoint's index follows the latest one. Call it before any write.
CREATE FUNCTION {is_next_checkpoint_v1}(given {checkpoint}) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  latest {checkpoint} := {latest_checkpoint_v1}(given.orchestrator, given.session_id);
BEGIN
  RETURN given.turn_index = COALESCE(latest.turn_index + 1, 0);
END $$;

CREATE FUNCTION {checkpoint_conflict_v1}(given {checkpoint}) RETURNS json LANGUAGE sql AS $$
  SELECT json_build_object('refused', 'CHECKPOINT_CONFLICT', 'orchestrator', given.orchestrator,
    'session_id', given.session_id, 'turn_index', given.turn_index)
$$;

-- Stores the checkpoint that {is_next_checkpoint_v1} allowed, and keeps the latest "keep", or all if it is NULL.
CREATE FUNCTION {append_checkpoint_v1}(given {checkpoint}, keep bigint, at bigint) RETURNS {checkpoint}
LANGUAGE plpgsql AS $$
BEGIN
  given.saved_at := at;
  INSERT INTO {checkpoint} SELECT given.*;
  DELETE FROM {checkpoint}
    WHERE orchestrator = given.orchestrator AND session_id = given.session_id AND turn_index <= given.turn_index - keep;
  RETURN given;
END $$;

-- Ends an open turn with the fields that the caller set in the row. Call {rest_lane_v1} afterwards.
CREATE FUNCTION {end_turn_v1}(turn {turn}, as_status text, at bigint) RETURNS {turn} LANGUAGE plpgsql AS $$
BEGIN
  UPDATE {turn} SET
    status = as_status, settled_at = at, due_at = NULL, cancel_mode = NULL, keep = NULL,
    wait_signal = NULL, wait_step = NULL, wait_until = NULL,
    failures = turn.failures, lost = turn.lost, superseded_by = turn.superseded_by, settled_fence = turn.settled_fence,
    turn_index = turn.turn_index, reply = turn.reply, error = turn.error, report = turn.report,
    spent = turn.spent
  WHERE id = turn.id RETURNING * INTO turn;
  PERFORM {changed_v1}(turn.id);
  RETURN turn;
END $$;

-- Returns the first open turn of a lane.
CREATE FUNCTION {head_v1}(of_session text) RETURNS {turn} LANGUAGE plpgsql AS $$
DECLARE
  head {turn};
BEGIN
  SELECT * INTO head FROM {turn} WHERE session_id = of_session AND settled_at IS NULL ORDER BY position LIMIT 1;
  RETURN head;
END $$;

-- Returns whether a head without a worker can be claimed.
CREATE FUNCTION {is_due_v1}(head {turn}, at bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF head.status = 'waiting' THEN RETURN COALESCE(head.wait_until <= at, false); END IF;
  RETURN COALESCE(head.due_at, 0) <= at;
END $$;

-- Writes a lane without a worker. Its head determines when the lane is due. The caller has set depth and
-- next_position. Returns true if the head is due now and workers must be notified.
CREATE FUNCTION {rest_lane_v1}(lane {lane}, at bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  head {turn};
  due boolean := false;
  look_at bigint;
BEGIN
  IF lane.depth > 0 THEN
    head := {head_v1}(lane.session_id);
    due := {is_due_v1}(head, at);
    -- A worker is notified of a due head; the second time applies if no worker responds.
    look_at := CASE WHEN head.status = 'waiting' THEN head.wait_until WHEN due THEN at + 1000 ELSE head.due_at END;
  END IF;
  UPDATE {lane} SET
    next_position = lane.next_position, depth = lane.depth,
    running_turn = NULL, holder = NULL, lease_until = NULL, attention_at = look_at, offers = 0
  WHERE session_id = lane.session_id;
  RETURN due;
END $$;

-- Cancels queued and waiting turns, but not a running one. The caller has locked the lane. Returns the turns' ids.
CREATE FUNCTION {cancel_open_turns_v1}(of_session text, at bigint) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
  lane {lane};
  turn {turn};
  cancelled text[] := '{}'::text[];
BEGIN
  SELECT * INTO lane FROM {lane} WHERE session_id = of_session;
  IF NOT FOUND THEN RETURN cancelled; END IF;
  FOR turn IN
    SELECT * FROM {turn}
    WHERE session_id = of_session AND settled_at IS NULL AND id IS DISTINCT FROM lane.running_turn ORDER BY position
  LOOP
    PERFORM {end_turn_v1}(turn, 'cancelled', at);
    cancelled := cancelled || turn.id;
    lane.depth := lane.depth - 1;
  END LOOP;
  IF lane.running_turn IS NULL THEN
    PERFORM {rest_lane_v1}(lane, at);
  ELSE
    UPDATE {lane} SET depth = lane.depth WHERE session_id = of_session;
  END IF;
  RETURN cancelled;
END $$;
