-- Writing and returning a session's row.

CREATE FUNCTION {session_missing_v1}(session_id text) RETURNS json LANGUAGE sql IMMUTABLE AS $$
  SELECT json_build_object('refused', 'SESSION_NOT_FOUND', 'session_id', session_id)
$$;

-- Returns the session after a sweep at that time.
CREATE FUNCTION {as_swept_v1}(swept {session}, ttl_ms bigint, at bigint) RETURNS {session} LANGUAGE plpgsql AS $$
BEGIN
  IF swept.state = 'active' AND at - swept.last_activity_at > ttl_ms THEN
    swept.state := 'suspended';
  END IF;
  RETURN swept;
END $$;

-- Locks the lane of a session before a write to it. Returns false if the session was erased.
CREATE FUNCTION {open_lane_v1}(of_session text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF {is_erased_v1}(of_session) THEN RETURN false; END IF;
  PERFORM {lock_lane_v1}(of_session, true);
  IF {is_erased_v1}(of_session) THEN
    -- The session was erased during the wait for the lane, which was recreated.
    DELETE FROM {lane} WHERE session_id = of_session;
    RETURN false;
  END IF;
  RETURN true;
END $$;

CREATE FUNCTION {insert_row_of_session_v1}(session {session}) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO {session} VALUES (session.*);
  INSERT INTO {session_surface} (surface_id, user_id, session_id)
    SELECT DISTINCT surface_id, session.user_id, session.id FROM unnest({surfaces_v1}(session.surfaces)) AS surface_id;
END $$;

-- Writes a locked session, and updates the surfaces that it is found by.
CREATE FUNCTION {write_session_v1}(before {session}, after {session}) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  held text[];
BEGIN
  UPDATE {session} SET
    user_id = after.user_id, workspace_id = after.workspace_id, state = after.state,
    created_at = after.created_at, last_activity_at = after.last_activity_at,
    state_changed_at = after.state_changed_at, surfaces = after.surfaces, metadata = after.metadata,
    version = after.version
    WHERE id = before.id;
  IF after.surfaces <> before.surfaces OR after.user_id <> before.user_id THEN
    held := {surfaces_v1}(after.surfaces);
    DELETE FROM {session_surface}
      WHERE session_id = before.id AND (surface_id <> ALL(held) OR user_id <> after.user_id);
    INSERT INTO {session_surface} (surface_id, user_id, session_id)
      SELECT surface_id, after.user_id, before.id FROM unnest(held) AS surface_id ON CONFLICT DO NOTHING;
  END IF;
END $$;

-- Returns the next version of a locked session, or the same one if no field changed.
CREATE FUNCTION {change_session_v1}(before {session}, after {session}) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  is_changed boolean := after IS DISTINCT FROM before;
BEGIN
  IF is_changed THEN
    after.version := before.version + 1;
    PERFORM {write_session_v1}(before, after);
  END IF;
  RETURN json_build_object('session', after, 'previousState', before.state, 'changed', is_changed);
END $$;
