-- StateStore.reset, and its effect on turns: a turn remembers the epochs of its lane from its first claim on.

-- Returns the namespaces of a json array that were reset since a turn was first claimed, or NULL.
CREATE FUNCTION {reset_since_v1}(lane {lane}, turn {turn}, namespaces json) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  IF turn.epochs IS NOT DISTINCT FROM lane.epochs OR turn.started_at IS NULL THEN RETURN NULL; END IF;
  RETURN (
    SELECT json_agg(name) FROM json_array_elements_text(namespaces) AS name
    WHERE (turn.epochs::json ->> name) IS DISTINCT FROM (lane.epochs::json ->> name)
  );
END $$;

CREATE FUNCTION {begin_epoch_v1}(lane {lane}, namespaces text[], epoch text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE {lane} SET epochs = COALESCE(lane.epochs, '{}')::jsonb
    || jsonb_object(namespaces, array_fill(epoch, ARRAY[cardinality(namespaces)]))
    WHERE session_id = lane.session_id;
END $$;

-- Resets a session with locked lane and documents. Returns null without a change if the head has another version.
CREATE FUNCTION {clear_state_v1}(args json, lane {lane}) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  given record;
  head {document} := json_populate_record(NULL::{document}, args -> 'head');
  stored {document} := {lock_document_v1}(head);
  now bigint := {now_v1}();
  version bigint := CASE WHEN {is_document_live_v1}(stored, now) THEN stored.version ELSE 0 END;
  had_turns boolean := lane.next_position > 1;
  documents json;
  messages bigint := 0;
BEGIN
  SELECT * INTO given FROM json_to_record(args) AS a(session_id text, namespaces text[], epoch text, if_version bigint);
  IF given.if_version <> version THEN RETURN 'null'::json; END IF;
  WITH gone AS (
    DELETE FROM {document} AS document WHERE session_id = given.session_id AND namespace = ANY(given.namespaces)
    RETURNING namespace, {is_document_live_v1}(document, now) AS was_live
  )
  SELECT json_object_agg(name, (SELECT count(*) FROM gone WHERE namespace = name AND was_live)) INTO documents
    FROM unnest(given.namespaces) AS name;
  IF head.key IS NOT NULL THEN
    DELETE FROM {message} WHERE session_id = given.session_id;
    GET DIAGNOSTICS messages = ROW_COUNT;
  END IF;
  IF had_turns THEN
    PERFORM {begin_epoch_v1}(lane, given.namespaces, given.epoch);
  END IF;
  IF had_turns AND head.key IS NOT NULL THEN
    head.batches := '[]';
    head.version := {next_version_v1}(version);
    head.created_at := now;
    head.accessed_at := now;
    INSERT INTO {document} SELECT head.*;
  END IF;
  RETURN json_build_object('documents', COALESCE(documents, '{}'), 'messages', messages);
END $$;

-- Late writers of documents wait and then see the reset. A missing lane is created, so that no turn starts
-- meanwhile.
CREATE FUNCTION {reset_state_v1}(args json) RETURNS json LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  of_session text := args ->> 'session_id';
  lane {lane};
  made boolean := false;
  cleared json;
BEGIN
  LOOP
    lane := {lock_lane_v1}(of_session, false);
    EXIT WHEN lane.session_id IS NOT NULL;
    made := {make_lane_v1}(of_session);
  END LOOP;
  PERFORM {lock_documents_v1}(of_session, true);
  cleared := {clear_state_v1}(args, lane);
  IF made THEN
    DELETE FROM {lane} WHERE session_id = of_session;
  END IF;
  RETURN cleared;
END $$;
