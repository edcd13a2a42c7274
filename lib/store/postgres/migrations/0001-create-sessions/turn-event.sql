-- TurnEventLog: writes under the lock of the session's lane.

-- Events are a JSON array as a string. restart is the event that precedes them if the last one belongs to an earlier
-- attempt.
CREATE FUNCTION {append_events_v1}(args json) RETURNS json LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  given record;
  turn {turn};
  last record;
  first bigint := 1;
BEGIN
  SELECT * INTO given FROM json_to_record(args) AS a(
    session_id text, turn_id text, fence bigint, batch bigint, size bigint, events text, restart text, ttl_ms bigint);
  turn := {held_v1}({lock_lane_v1}(given.session_id, false), given.turn_id, given.fence);
  IF turn.id IS NULL THEN
    RETURN {fenced_v1}(given.session_id, given.turn_id, given.fence);
  END IF;
  SELECT last_offset, fence, batch INTO last FROM {turn_event}
    WHERE turn_id = given.turn_id ORDER BY last_offset DESC LIMIT 1;
  IF FOUND THEN
    IF last.fence = given.fence AND last.batch >= given.batch THEN
      RETURN to_json(last.last_offset);
    END IF;
    first := last.last_offset + 1;
    IF last.fence <> given.fence THEN
      given.events := '[' || given.restart || ',' || substr(given.events, 2);
      first := first + 1;
    END IF;
  END IF;
  INSERT INTO {turn_event}
    VALUES (given.turn_id, first + given.size - 1, given.fence, given.batch, given.events);
  IF turn.event_ttl IS DISTINCT FROM given.ttl_ms THEN
    UPDATE {turn} SET event_ttl = given.ttl_ms WHERE id = given.turn_id;
  END IF;
  PERFORM {appended_v1}(given.turn_id, first + given.size - 1);
  RETURN to_json(first + given.size - 1);
END $$;

-- Events of turns that are locked now stay.
CREATE FUNCTION {delete_expired_events_v1}(args json) RETURNS json LANGUAGE plpgsql
SET enable_seqscan = off SET enable_sort = off AS $$
DECLARE
  now bigint := {now_v1}();
  over text[] := ARRAY(
    SELECT id FROM {turn} WHERE settled_at + event_ttl <= now
    ORDER BY settled_at + event_ttl LIMIT (args ->> 'max_turns')::bigint FOR UPDATE SKIP LOCKED
  );
BEGIN
  DELETE FROM {turn_event} WHERE turn_id = ANY(over);
  UPDATE {turn} SET event_ttl = NULL WHERE id = ANY(over);
  RETURN to_json(cardinality(over));
END $$;
