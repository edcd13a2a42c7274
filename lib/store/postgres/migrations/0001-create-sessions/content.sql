-- ConversationLog and CheckpointStore: writes under the lock of the session's lane.

CREATE FUNCTION {append_to_conversation_v1}(args json) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  required json := args -> 'require_session';
  refusal json;
BEGIN
  -- Every existing session has a lane.
  IF coalesce(required::text, 'false') <> 'false' THEN
    PERFORM {lock_lane_v1}(args ->> 'session_id', false);
    refusal := {state_refusal_v1}(args ->> 'session_id', required);
    IF refusal IS NOT NULL THEN RETURN refusal; END IF;
  ELSIF NOT {open_lane_v1}(args ->> 'session_id') THEN
    RETURN {session_missing_v1}(args ->> 'session_id');
  END IF;
  RETURN {append_messages_v1}(args ->> 'session_id', args -> 'messages', NULL, NULL, {now_v1}());
END $$;

CREATE FUNCTION {save_checkpoint_v1}(args json) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  given {checkpoint} := json_populate_record(NULL::{checkpoint}, args -> 'checkpoint');
BEGIN
  IF NOT {open_lane_v1}(given.session_id) THEN RETURN {session_missing_v1}(given.session_id); END IF;
  IF NOT {is_next_checkpoint_v1}(given) THEN RETURN {checkpoint_conflict_v1}(given); END IF;
  RETURN row_to_json({append_checkpoint_v1}(given, (args ->> 'keep')::bigint, {now_v1}()));
END $$;

-- Deletes all but the latest "keep" checkpoints; 0 deletes all.
CREATE FUNCTION {prune_checkpoints_v1}(args json) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  given record;
  lane {lane};
  latest {checkpoint};
  gone bigint;
BEGIN
  SELECT * INTO given FROM json_to_record(args) AS arg(orchestrator text, session_id text, keep bigint);
  lane := {lock_lane_v1}(given.session_id, false);
  latest := {latest_checkpoint_v1}(given.orchestrator, lane.session_id);
  DELETE FROM {checkpoint}
    WHERE orchestrator = given.orchestrator AND session_id = given.session_id
      AND turn_index <= latest.turn_index - given.keep;
  GET DIAGNOSTICS gone = ROW_COUNT;
  RETURN to_json(gone);
END $$;
