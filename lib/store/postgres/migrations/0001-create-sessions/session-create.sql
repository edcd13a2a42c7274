-- create, createOrAdopt, insert and update.

CREATE FUNCTION {session_taken_v1}(session_id text) RETURNS json LANGUAGE sql IMMUTABLE AS $$
  SELECT json_build_object('refused', 'SESSION_CONFLICT', 'session_id', session_id)
$$;

CREATE FUNCTION {is_session_taken_v1}(of_session text) RETURNS boolean LANGUAGE sql VOLATILE AS $$
  SELECT EXISTS (SELECT 1 FROM {session} WHERE id = of_session) OR {is_erased_v1}(of_session)
$$;

-- A session with a surface may detach it from another one. To adopt a session, lock the slot exclusively.
CREATE FUNCTION {lock_slots_of_new_session_v1}(
  user_id text, workspace_id text, surfaces text[], policy text, is_adopting boolean
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF is_adopting AND cardinality(surfaces) = 0 THEN
    PERFORM {lock_slots_v1}(user_id, workspace_id, ARRAY[NULL], '{}');
  ELSIF is_adopting OR policy <> 'share' THEN
    PERFORM {lock_slots_v1}(user_id, workspace_id, surfaces, ARRAY[NULL]);
  ELSE
    PERFORM {lock_slots_v1}(user_id, workspace_id, '{}', array_append(surfaces, NULL));
  END IF;
END $$;

-- With recent_ms: createOrAdopt.
CREATE FUNCTION {create_session_v1}(args json) RETURNS json LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  given record;
  made {session};
  conflict json;
  rivals text[] := '{}'::text[];
BEGIN
  SELECT * INTO given FROM json_to_record(args)
    AS arg(id text, user_id text, workspace_id text, surfaces text[], metadata text, policy text, recent_ms bigint,
      lifetime json);
  PERFORM {lock_slots_of_new_session_v1}(
    given.user_id, given.workspace_id, given.surfaces, given.policy, given.recent_ms IS NOT NULL
  );
  IF given.recent_ms IS NOT NULL THEN
    SELECT * INTO made FROM {recent_session_v1}(
      given.user_id, given.workspace_id, given.surfaces[1], {now_v1}() - given.recent_ms
    );
    IF FOUND THEN RETURN json_build_object('session', made, 'created', false, 'movedFrom', json_build_array()); END IF;
  END IF;

  -- Check both before the lane is created, because a rejected call needs none.
  IF {is_session_taken_v1}(given.id) THEN RETURN {session_taken_v1}(given.id); END IF;
  IF given.policy <> 'share' THEN
    rivals := {rivals_v1}(given.id, given.user_id, given.workspace_id, given.surfaces);
    PERFORM {lock_sessions_v1}(rivals);
  END IF;
  IF given.policy = 'reject' THEN
    conflict := {surface_conflict_v1}(
      given.id, given.user_id, given.workspace_id, given.surfaces, given.lifetime, {now_v1}()
    );
    IF conflict IS NOT NULL THEN RETURN conflict; END IF;
  END IF;
  IF NOT {open_lane_v1}(given.id) OR {is_session_taken_v1}(given.id) THEN RETURN {session_taken_v1}(given.id); END IF;

  made.id := given.id;
  made.user_id := given.user_id;
  made.workspace_id := given.workspace_id;
  made.state := 'created';
  made.created_at := {now_v1}();
  made.last_activity_at := made.created_at;
  made.surfaces := array_to_json(given.surfaces);
  made.metadata := given.metadata;
  made.version := 1;
  PERFORM {insert_row_of_session_v1}(made);
  RETURN json_build_object(
    'session', made, 'created', true, 'movedFrom', {take_surfaces_v1}(rivals, given.surfaces)
  );
END $$;

CREATE FUNCTION {insert_session_v1}(args json) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  given {session} := json_populate_record(NULL::{session}, args);
BEGIN
  IF NOT {open_lane_v1}(given.id) OR {is_session_taken_v1}(given.id) THEN RETURN {session_taken_v1}(given.id); END IF;
  PERFORM {insert_row_of_session_v1}(given);
  RETURN 'null'::json;
END $$;

-- Fields that the patch does not contain stay.
CREATE FUNCTION {update_session_v1}(args json) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  before {session};
  after {session};
BEGIN
  SELECT * INTO before FROM {session} WHERE id = args ->> 'id' FOR UPDATE;
  IF NOT FOUND THEN RETURN {session_missing_v1}(args ->> 'id'); END IF;
  after := json_populate_record(before, args -> 'patch');
  after.id := before.id;
  PERFORM {write_session_v1}(before, after);
  RETURN row_to_json(after);
END $$;
