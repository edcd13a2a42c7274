-- TurnLedger.control, clear, lane and lanes. The row of the session '' contains the mode of all lanes.

-- Returns the mode of all lanes; NULL: open. Read under the lock of a lane, it includes earlier changes.
CREATE FUNCTION {mode_of_all_v1}() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT mode FROM {lane} WHERE session_id = '');
END $$;

-- Returns whether a locked lane is closed for claims. A paused lane is not offered until it is opened.
CREATE FUNCTION {is_paused_v1}(lane {lane}) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF lane.mode IS DISTINCT FROM 'paused' THEN
    RETURN COALESCE({mode_of_all_v1}() = 'paused', false);
  END IF;
  UPDATE {lane} SET attention_at = NULL WHERE session_id = lane.session_id AND attention_at IS NOT NULL;
  RETURN true;
END $$;

-- Recomputes when a lane is due, because a rejected claim removed it from the index. Returns true if workers must be notified.
CREATE FUNCTION {go_on_v1}(lane {lane}, at bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF lane.running_turn IS NULL THEN
    RETURN {rest_lane_v1}(lane, at);
  END IF;
  UPDATE {lane} SET attention_at = lease_until WHERE session_id = lane.session_id;
  RETURN lane.lease_until <= at;
END $$;

CREATE FUNCTION {control_lane_v1}(args json) RETURNS json LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  given record;
  lane {lane};
  notify boolean := false;
BEGIN
  SELECT * INTO given FROM json_to_record(args) AS a(session_id text, mode text, foreign_session boolean);
  -- Lanes of other sessions exist since the sessions were created.
  IF given.foreign_session AND NOT {open_lane_v1}(given.session_id) THEN
    RETURN {session_missing_v1}(given.session_id);
  END IF;
  lane := {lock_lane_v1}(given.session_id, given.session_id = '');
  IF lane.session_id IS NULL OR NOT (
    given.session_id = '' OR given.foreign_session OR EXISTS (SELECT FROM {session} WHERE id = given.session_id)
  ) THEN
    RETURN {session_missing_v1}(given.session_id);
  END IF;
  UPDATE {lane} SET mode = NULLIF(given.mode, 'open') WHERE session_id = given.session_id;
  IF given.mode <> 'paused' AND lane.depth > 0 THEN
    notify := {go_on_v1}(lane, {now_v1}());
  END IF;
  RETURN json_build_object('notify', notify);
END $$;

-- Returns the ids of the cancelled turns.
CREATE FUNCTION {clear_lane_v1}(args json) RETURNS json LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
  PERFORM {lock_lane_v1}(args ->> 'session_id', false);
  RETURN to_json({cancel_open_turns_v1}(args ->> 'session_id', {now_v1}()));
END $$;

-- Returns a lane, which may not exist, with its head without large fields, and the turn behind the head for its age.
CREATE FUNCTION {lane_view_v1}(of_session text) RETURNS json LANGUAGE sql STABLE AS $$
  SELECT json_build_object(
    'session_id', of_session, 'mode', lane.mode, 'depth', COALESCE(lane.depth, 0), 'holder', lane.holder,
    'lease_until', lane.lease_until, 'turn_id', head.id, 'orchestrator', head.orchestrator, 'status', head.status,
    'failures', head.failures, 'lost', head.lost, 'cancel_mode', head.cancel_mode, 'wait_signal', head.wait_signal,
    'wait_until', head.wait_until, 'accepted_at', head.accepted_at, 'started_at', head.started_at,
    'due_at', head.due_at, 'next_accepted_at', behind.accepted_at
  )
  FROM (SELECT) AS nothing
  LEFT JOIN {lane} AS lane ON lane.session_id = of_session
  LEFT JOIN LATERAL (
    SELECT * FROM {turn} WHERE session_id = of_session AND settled_at IS NULL ORDER BY position LIMIT 1
  ) AS head ON true
  LEFT JOIN LATERAL (
    SELECT accepted_at FROM {turn}
    WHERE session_id = of_session AND settled_at IS NULL AND position > head.position ORDER BY position LIMIT 1
  ) AS behind ON true
$$;

-- STABLE like the function above, so that the whole result is one snapshot.
CREATE FUNCTION {lane_v1}(args json) RETURNS json LANGUAGE plpgsql STABLE SET enable_seqscan = off AS $$
BEGIN
  RETURN {lane_view_v1}(args ->> 'session_id');
END $$;

-- Reads one range of the index of open turns.
CREATE FUNCTION {lanes_v1}(args json) RETURNS json
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET enable_hashagg = off AS $$
DECLARE
  page text[] := ARRAY(
    SELECT DISTINCT session_id FROM {turn} WHERE settled_at IS NULL AND session_id > args ->> 'after'
    ORDER BY session_id LIMIT (args ->> 'limit')::bigint
  );
BEGIN
  RETURN json_build_object(
    'mode', {mode_of_all_v1}(),
    'lanes', (
      SELECT COALESCE(json_agg({lane_view_v1}(id) ORDER BY place), '[]')
      FROM unnest(page) WITH ORDINALITY AS of_page (id, place)
    )
  );
END $$;
