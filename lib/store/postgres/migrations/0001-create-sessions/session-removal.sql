-- delete and erase.

-- Removes all rows of a session with a locked lane, except its tombstone. Returns whether the session existed.
CREATE FUNCTION {remove_session_v1}(of_session text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  -- Locked before their steps, signals and events, as sweeps of turns do. Another order could deadlock with them.
  turns text[] := ARRAY(SELECT id FROM {turn} WHERE session_id = of_session FOR UPDATE);
  found_session boolean;
BEGIN
  PERFORM {lock_documents_v1}(of_session, true);
  -- Delete the session first, because it locks its surfaces.
  DELETE FROM {session} WHERE id = of_session;
  found_session := FOUND;
  DELETE FROM {session_surface} WHERE session_id = of_session;
  -- Notify waiters for turns of the session.
  PERFORM {changed_v1}(id) FROM {turn} WHERE session_id = of_session AND settled_at IS NULL;
  DELETE FROM {step} WHERE turn_id = ANY(turns);
  DELETE FROM {signal} WHERE turn_id = ANY(turns);
  DELETE FROM {turn_event} WHERE turn_id = ANY(turns);
  DELETE FROM {turn} WHERE session_id = of_session;
  DELETE FROM {checkpoint} WHERE session_id = of_session;
  DELETE FROM {message} WHERE session_id = of_session;
  DELETE FROM {document} WHERE session_id = of_session;
  DELETE FROM {lane} WHERE session_id = of_session;
  RETURN found_session;
END $$;

-- Creates the lane even for an unknown id, so that a concurrent creation waits until all rows are removed.
CREATE FUNCTION {delete_session_v1}(args json) RETURNS json LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
  PERFORM {lock_lane_v1}(args ->> 'id', true);
  RETURN to_json({remove_session_v1}(args ->> 'id'));
END $$;

-- A writer that waits for the lane sees the tombstone afterwards. Another session than the required one is kept.
CREATE FUNCTION {erase_session_v1}(args json) RETURNS json LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  session {session};
BEGIN
  PERFORM {lock_lane_v1}(args ->> 'id', true);
  SELECT * INTO session FROM {session} WHERE id = args ->> 'id';
  IF {is_other_session_v1}(session, args -> 'require_session') THEN RETURN to_json(false); END IF;
  INSERT INTO {tombstone} (session_id, erased_at) VALUES (args ->> 'id', {now_v1}()) ON CONFLICT DO NOTHING;
  RETURN to_json({remove_session_v1}(args ->> 'id'));
END $$;
