-- A slot is a surface of a user in a workspace, or that user's sessions without a surface. A transaction that may put a
-- session into a slot locks it, shared or exclusively, before any row. A transaction with an exclusive lock therefore
-- sees all sessions of the slot.

CREATE FUNCTION {slot_v1}(user_id text, workspace_id text, surface_id text) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT hashtextextended(json_build_array({slot'}, user_id, workspace_id, surface_id)::text, 0)
$$;

-- Locks the slots of "alone_in" exclusively and those of "others_in" shared. The surface NULL is the slot of the sessions
-- without a surface. Takes the locks in order, so that transactions with several locks cannot deadlock.
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

-- Returns the live sessions in a slot.
CREATE FUNCTION {holders_v1}(of_user text, of_workspace text, of_surface text) RETURNS SETOF {session}
LANGUAGE sql STABLE AS $$
  SELECT session.* FROM {session_surface} AS held JOIN {session} AS session ON session.id = held.session_id
  WHERE held.surface_id = of_surface AND held.user_id = of_user
    AND workspace_id IS NOT DISTINCT FROM of_workspace AND state <> 'expired'
$$;

-- Returns a session that was just created for the same slot. Its last activity is not older than its creation, which
-- excludes the user's older sessions from the search.
CREATE FUNCTION {recent_session_v1}(of_user text, of_workspace text, of_surface text, since bigint)
RETURNS SETOF {session} LANGUAGE sql STABLE AS $$
  SELECT session.* FROM {session} AS session
  WHERE user_id = of_user AND workspace_id IS NOT DISTINCT FROM of_workspace AND state <> 'expired'
    AND last_activity_at >= since AND created_at >= since
    AND CASE WHEN of_surface IS NULL THEN surfaces = '[]' ELSE of_surface = ANY({surfaces_v1}(surfaces)) END
  ORDER BY last_activity_at DESC, created_at DESC, id
  LIMIT 1
$$;

-- Returns the other sessions with one of the surfaces, by id.
CREATE FUNCTION {rivals_v1}(of_session text, of_user text, of_workspace text, surfaces text[]) RETURNS text[]
LANGUAGE sql STABLE AS $$
  SELECT ARRAY(
    SELECT DISTINCT holder.id
    FROM unnest(surfaces) AS surface_id, {holders_v1}(of_user, of_workspace, surface_id) AS holder
    WHERE holder.id <> of_session
  )
$$;

-- Returns whether a sweep expires a live session because of its age or idle time.
CREATE FUNCTION {is_abandoned_v1}(holder {session}, lifetime json, at bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(at - holder.created_at > (lifetime ->> 'max_ms')::bigint, false)
    OR coalesce(at - holder.last_activity_at
      > (lifetime ->> CASE holder.state WHEN 'active' THEN 'active_idle_ms' ELSE 'idle_ms' END)::bigint, false)
$$;

-- Returns the response of policy "reject" if another session has one of the surfaces, else NULL.
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

-- Detaches surfaces from locked sessions. Reads the sessions after the lock, and skips those that have expired before it.
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
