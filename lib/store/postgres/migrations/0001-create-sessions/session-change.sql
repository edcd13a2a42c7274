-- Changes of one existing session.

CREATE FUNCTION {touch_session_v1}(args json) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  given record;
  before {session};
  after {session};
  now bigint;
BEGIN
  SELECT * INTO given FROM json_to_record(args)
    AS arg(id text, ttl_ms bigint, max_lifetime_ms bigint, require_session json);
  SELECT * INTO before FROM {session} WHERE id = given.id FOR UPDATE;
  IF NOT FOUND OR {is_other_session_v1}(before, given.require_session) THEN
    RETURN {session_missing_v1}(given.id);
  END IF;
  now := {now_v1}();
  IF before.state = 'expired' OR now - before.created_at > given.max_lifetime_ms THEN
    RETURN {session_over_v1}(given.id, 'touch');
  END IF;
  before := {as_swept_v1}(before, given.ttl_ms, now);
  after := before;
  IF before.state <> 'active' THEN
    after.state := 'active';
    after.state_changed_at := now;
  END IF;
  after.last_activity_at := greatest(before.last_activity_at, now);
  RETURN {change_session_v1}(before, after);
END $$;

CREATE FUNCTION {attach_surface_v1}(args json) RETURNS json LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  given record;
  before {session};
  after {session};
  rivals text[] := '{}'::text[];
  refusal json;
  lost json;
  held text[];
  detached text[] := '{}'::text[];
BEGIN
  SELECT * INTO given FROM json_to_record(args)
    AS arg(
      id text, surface_id text, policy text, max_surfaces bigint, on_limit text, lifetime json, require_session json
    );
  SELECT * INTO before FROM {session} WHERE id = given.id;
  IF NOT FOUND THEN RETURN {session_missing_v1}(given.id); END IF;
  IF given.policy = 'share' THEN
    PERFORM {lock_slots_v1}(before.user_id, before.workspace_id, '{}', ARRAY[given.surface_id]);
  ELSE
    PERFORM {lock_slots_v1}(before.user_id, before.workspace_id, ARRAY[given.surface_id], ARRAY[NULL]);
  END IF;
  IF given.policy <> 'share' THEN
    rivals := {rivals_v1}(given.id, before.user_id, before.workspace_id, ARRAY[given.surface_id]);
  END IF;
  PERFORM {lock_sessions_v1}(rivals || given.id);

  SELECT * INTO before FROM {session} WHERE id = given.id;
  IF NOT FOUND OR {is_other_session_v1}(before, given.require_session) THEN
    RETURN {session_missing_v1}(given.id);
  END IF;
  held := {surfaces_v1}(before.surfaces);
  IF before.state = 'expired' OR {now_v1}() - before.created_at > (given.lifetime ->> 'max_ms')::bigint THEN
    RETURN {session_over_v1}(given.id, 'attachSurface');
  END IF;
  IF given.surface_id = ANY(held) THEN
    RETURN {attached_v1}({change_session_v1}(before, before), json_build_array(), '{}');
  END IF;
  IF cardinality(held) >= given.max_surfaces THEN
    IF given.on_limit = 'reject' THEN
      RETURN json_build_object('refused', 'SURFACE_LIMIT', 'session_id', given.id, 'limit', given.max_surfaces);
    END IF;
    detached := held[:cardinality(held) + 1 - given.max_surfaces];
    held := held[cardinality(detached) + 1:];
  END IF;
  IF given.policy = 'reject' THEN
    refusal := {surface_conflict_v1}(
      given.id, before.user_id, before.workspace_id, ARRAY[given.surface_id], given.lifetime, {now_v1}()
    );
    IF refusal IS NOT NULL THEN RETURN refusal; END IF;
  END IF;
  lost := {take_surfaces_v1}(rivals, ARRAY[given.surface_id]);
  after := before;
  after.surfaces := array_to_json(held || given.surface_id);
  RETURN {attached_v1}({change_session_v1}(before, after), lost, detached);
END $$;

-- A session without surfaces can be adopted.
CREATE FUNCTION {detach_surface_v1}(args json) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  given record;
  before {session};
  after {session};
BEGIN
  SELECT * INTO given FROM json_to_record(args) AS arg(id text, surface_id text);
  SELECT * INTO before FROM {session} WHERE id = given.id;
  PERFORM {lock_slots_v1}(before.user_id, before.workspace_id, '{}', ARRAY[NULL]);
  SELECT * INTO before FROM {session} WHERE id = given.id FOR UPDATE;
  IF NOT FOUND THEN RETURN {session_missing_v1}(given.id); END IF;
  after := before;
  after.surfaces := array_to_json(array_remove({surfaces_v1}(before.surfaces), given.surface_id));
  RETURN {change_session_v1}(before, after);
END $$;

CREATE FUNCTION {expire_session_v1}(args json) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  RETURN {end_session_v1}(args ->> 'id', NULL, NULL);
END $$;

CREATE FUNCTION {revoke_session_v1}(args json) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  RETURN {end_session_v1}(args ->> 'id', args -> 'require_session', 'cancel');
END $$;

CREATE FUNCTION {merge_metadata_v1}(args json) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  given record;
  before {session};
  after {session};
  merged record;
BEGIN
  SELECT * INTO given FROM json_to_record(args)
    AS arg(id text, patch text, max_bytes bigint, require_session json);
  SELECT * INTO before FROM {session} WHERE id = given.id FOR UPDATE;
  IF NOT FOUND OR {is_other_session_v1}(before, given.require_session) THEN
    RETURN {session_missing_v1}(given.id);
  END IF;
  SELECT * INTO merged FROM {merged_metadata_v1}(before.metadata, given.patch);
  IF merged.bytes > given.max_bytes THEN
    RETURN json_build_object(
      'refused', 'TOO_LARGE', 'subject', format('The metadata of session %s', given.id),
      'bytes', merged.bytes, 'max_bytes', given.max_bytes
    );
  END IF;
  after := before;
  after.metadata := merged.metadata;
  RETURN {change_session_v1}(before, after);
END $$;

-- Helpers of the functions above.

CREATE FUNCTION {session_over_v1}(session_id text, attempted text) RETURNS json LANGUAGE sql IMMUTABLE AS $$
  SELECT json_build_object(
    'refused', 'SESSION_STATE', 'session_id', session_id, 'state', 'expired', 'attempted', attempted
  )
$$;

CREATE FUNCTION {attached_v1}(change json, lost json, detached text[]) RETURNS json LANGUAGE sql IMMUTABLE AS $$
  SELECT json_build_object('change', change, 'movedFrom', lost, 'detached', detached)
$$;

CREATE FUNCTION {expire_locked_session_v1}(before {session}, at bigint) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  after {session} := before;
BEGIN
  IF before.state <> 'expired' THEN
    after.state := 'expired';
    after.state_changed_at := at;
  END IF;
  RETURN {change_session_v1}(before, after);
END $$;

-- Expires a session, if it is the required one. "mark" cancels its running turn; NULL lets it continue.
CREATE FUNCTION {end_session_v1}(of_session text, required json, mark text) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  lane {lane};
  before {session};
  now bigint;
BEGIN
  lane := {lock_lane_v1}(of_session, false);
  SELECT * INTO before FROM {session} WHERE id = lane.session_id FOR UPDATE;
  IF NOT FOUND OR {is_other_session_v1}(before, required) THEN RETURN {session_missing_v1}(of_session); END IF;
  now := {now_v1}();
  -- Also for a repeated call, because a running turn may have returned to the queue.
  PERFORM {cancel_open_turns_v1}(before.id, now);
  IF mark IS NOT NULL AND lane.running_turn IS NOT NULL THEN
    PERFORM {mark_turn_v1}(lane.running_turn, mark, NULL);
  END IF;
  RETURN {expire_locked_session_v1}(before, now);
END $$;

-- Keys and values are JSON strings that PostgreSQL does not parse. bytes: the size of the metadata as plain JSON in UTF-8,
-- including braces, colons and commas.
CREATE FUNCTION {merged_metadata_v1}(stored text, patch text, OUT metadata text, OUT bytes bigint)
LANGUAGE sql IMMUTABLE AS $$
  WITH old AS (SELECT key, value, place FROM json_each_text(stored::json) WITH ORDINALITY AS entry(key, value, place)),
    new AS (SELECT key, value, place FROM json_each_text(patch::json) WITH ORDINALITY AS entry(key, value, place)),
    merged AS (
      SELECT
        key, CASE WHEN new.key IS NULL THEN old.value ELSE new.value END AS value,
        old.place, new.place AS new_place
      FROM old FULL JOIN new USING (key)
      WHERE new.key IS NULL OR new.value IS NOT NULL
    )
  SELECT
    '{'
      || coalesce(string_agg(to_json(key)::text || ':' || to_json(value)::text, ',' ORDER BY place, new_place), '')
      || '}',
    greatest(2, 1 + sum(octet_length(key) + octet_length(value) + 2))
  FROM merged
$$;
