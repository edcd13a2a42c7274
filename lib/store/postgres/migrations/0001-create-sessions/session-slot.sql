-- Slots: a surface of a user in a workspace, and the place of the user's sessions that have none. Whoever may bring a
-- session into a slot locks it, together with the others or alone, before any row, so that the sessions that somebody
-- alone in a slot has seen there are all that there are.

CREATE FUNCTION {slot_v1}(user_id text, workspace_id text, surface_id text) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT hashtextextended(json_build_array({slot'}, user_id, workspace_id, surface_id)::text, 0)
$$;

-- No surface, NULL, is a slot as well. Sorted, so that two who lock several never wait for each other.
CREATE FUNCTION {lock_slots_v1}(user_id text, workspace_id text, alone_in text[], others_in text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  slot record;
BEGIN
  FOR slot IN
    SELECT key, bool_or(is_alone) AS is_alone FROM (
      SELECT {slot_v1}(user_id, workspace_id, surface_id) AS key, true AS is_alone FROM unnest(alone_in) AS surface_id
      UNION ALL
      SELECT {slot_v1}(user_id, workspace_id, surface_id), false FROM unnest(others_in) AS surface_id
    ) AS slots
    GROUP BY key ORDER BY key
  LOOP
    IF slot.is_alone THEN
      PERFORM pg_advisory_xact_lock(slot.key);
    ELSE
      PERFORM pg_advisory_xact_lock_shared(slot.key);
    END IF;
  END LOOP;
END $$;

CREATE FUNCTION {surfaces_v1}(surfaces text) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
  SELECT ARRAY(SELECT json_array_elements_text(surfaces::json))
$$;

-- The live sessions in a slot. From the user's sessions to their surfaces: everybody may have the same surface.
CREATE FUNCTION {holders_v1}(of_user text, of_workspace text, of_surface text) RETURNS SETOF {session}
LANGUAGE sql STABLE AS $$
  SELECT session.* FROM {session} AS session
  WHERE user_id = of_user AND workspace_id IS NOT DISTINCT FROM of_workspace AND state <> 'expired'
    AND of_surface = ANY({surfaces_v1}(surfaces))
$$;

-- A session that somebody has just created for the same slot. Its last activity is no older than its creation, which
-- keeps the user's past out of the search.
CREATE FUNCTION {recent_session_v1}(of_user text, of_workspace text, of_surface text, since bigint)
RETURNS SETOF {session} LANGUAGE sql STABLE AS $$
  SELECT session.* FROM {session} AS session
  WHERE user_id = of_user AND workspace_id IS NOT DISTINCT FROM of_workspace AND state <> 'expired'
    AND last_activity_at >= since AND created_at >= since
    AND CASE WHEN of_surface IS NULL THEN surfaces = '[]' ELSE of_surface = ANY({surfaces_v1}(surfaces)) END
  ORDER BY last_activity_at DESC, created_at DESC, id
  LIMIT 1
$$;

-- The other sessions that have one of the surfaces, by id.
CREATE FUNCTION {rivals_v1}(of_session text, of_user text, of_workspace text, surfaces text[]) RETURNS text[]
LANGUAGE sql STABLE AS $$
  SELECT ARRAY(
    SELECT DISTINCT holder.id
    FROM unnest(surfaces) AS surface_id, {holders_v1}(of_user, of_workspace, surface_id) AS holder
    WHERE holder.id <> of_session
  )
$$;

-- Whether a live session is past its lifetime, or idle for so long that a sweep expires it.
CREATE FUNCTION {is_abandoned_v1}(holder {session}, lifetime json, at bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(at - holder.created_at > (lifetime ->> 'max_ms')::bigint, false)
    OR coalesce(at - holder.last_activity_at
      > (lifetime ->> CASE holder.state WHEN 'active' THEN 'active_idle_ms' ELSE 'idle_ms' END)::bigint, false)
$$;

-- How policy "reject" answers when another session holds one of the surfaces; NULL: none does.
CREATE FUNCTION {surface_conflict_v1}(
  of_session text, of_user text, of_workspace text, surfaces text[], lifetime json, at bigint
) RETURNS json LANGUAGE sql STABLE AS $$
  SELECT json_build_object(
    'refused', 'SURFACE_CONFLICT', 'session_id', of_session, 'surface_id', surface_id, 'held_by', holder.id
  )
  FROM unnest(surfaces) WITH ORDINALITY AS wanted(surface_id, place),
    {holders_v1}(of_user, of_workspace, surface_id) AS holder
  WHERE holder.id <> of_session AND NOT {is_abandoned_v1}(holder, lifetime, at)
  ORDER BY place, last_activity_at DESC
  LIMIT 1
$$;

CREATE FUNCTION {lock_sessions_v1}(ids text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM {session} WHERE id = ANY(ids) ORDER BY id FOR UPDATE;
END $$;

-- Takes surfaces from sessions that are locked. What changed, or ended, before they were is seen here.
CREATE FUNCTION {take_surfaces_v1}(from_sessions text[], taken text[]) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  before {session};
  after {session};
  surface text;
  losers {session}[] := '{}'::{session}[];
BEGIN
  FOR before IN SELECT * FROM {session} WHERE id = ANY(from_sessions) AND state <> 'expired' ORDER BY id LOOP
    after := before;
    FOREACH surface IN ARRAY taken LOOP
      CONTINUE WHEN surface <> ALL({surfaces_v1}(after.surfaces));
      after.surfaces := array_to_json(array_remove({surfaces_v1}(after.surfaces), surface));
      after.version := after.version + 1;
    END LOOP;
    CONTINUE WHEN after.version = before.version;
    PERFORM {write_session_v1}(before, after);
    losers := losers || after;
  END LOOP;
  RETURN array_to_json(losers);
END $$;
