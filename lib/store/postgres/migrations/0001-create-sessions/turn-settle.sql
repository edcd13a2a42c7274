-- TurnLedger.settle: all changes of the turn, the head of the lane, and the claim of the next turn.

-- Touches the session unless it has ended. A late settle does not reactivate it.
CREATE FUNCTION {touch_session_of_turn_v1}(of_session text, ttl_ms bigint, at bigint) RETURNS json
LANGUAGE plpgsql AS $$
DECLARE
  before {session};
  after {session};
BEGIN
  SELECT * INTO before FROM {session} WHERE id = of_session FOR UPDATE;
  IF NOT FOUND OR before.state = 'expired' THEN
    RETURN NULL;
  END IF;
  before := {as_swept_v1}(before, ttl_ms, at);
  UPDATE {session} SET
    state = 'active',
    state_changed_at = CASE before.state WHEN 'active' THEN state_changed_at ELSE at END,
    last_activity_at = GREATEST(last_activity_at, at),
    version = version + 1
  WHERE id = of_session AND (state <> 'active' OR last_activity_at < at)
  RETURNING * INTO after;
  RETURN json_build_object('previous_state', before.state, 'changed', FOUND,
    'session', CASE WHEN FOUND THEN row_to_json(after) ELSE row_to_json(before) END);
END $$;

CREATE FUNCTION {hand_over_v1}(settled {turn}, next json, session_change json, at bigint) RETURNS json
LANGUAGE plpgsql AS $$
DECLARE
  claimed json;
  notify boolean := false;
BEGIN
  IF next IS NOT NULL THEN
    claimed := {claim_head_v1}(settled.session_id, next, at) -> 'claimed';
  END IF;
  IF COALESCE(json_typeof(claimed), 'null') = 'null' AND EXISTS (
    SELECT FROM {lane} WHERE session_id = settled.session_id AND depth > 0 AND running_turn IS NULL
  ) THEN
    notify := {is_due_v1}({head_v1}(settled.session_id), at);
  END IF;
  RETURN json_build_object('turn', row_to_json(settled), 'next', claimed, 'notify', notify,
    'session_change', session_change);
END $$;

CREATE FUNCTION {settle_v1}(args json) RETURNS json LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  given record;
  lane {lane};
  turn {turn};
  reset json;
  new_checkpoint {checkpoint};
  session_change json;
  at bigint;
BEGIN
  SELECT * INTO given FROM json_to_record(args) AS a(
    session_id text, turn_id text, fence bigint, status text, reply text, error text, report text, usage text,
    messages json, checkpoint json, keep bigint, state_changes json, namespaces json, session_ttl_ms bigint,
    next json);
  lane := {lock_lane_v1}(given.session_id, false);
  IF given.state_changes IS NOT NULL THEN
    PERFORM {lock_changed_documents_v1}(given.session_id, given.state_changes);
  END IF;
  at := {now_v1}();
  SELECT * INTO turn FROM {turn}
    WHERE id = given.turn_id AND session_id = lane.session_id AND settled_fence = given.fence;
  IF FOUND THEN
    -- A repeated call: the first one was committed, but its response was lost.
    RETURN {hand_over_v1}(turn, given.next, NULL, at);
  END IF;
  turn := {held_v1}(lane, given.turn_id, given.fence);
  IF turn.id IS NULL THEN
    RETURN {fenced_v1}(given.session_id, given.turn_id, given.fence);
  END IF;
  reset := {reset_since_v1}(lane, turn, given.namespaces);
  IF reset IS NOT NULL THEN
    RETURN json_build_object('refused', 'STATE_RESET', 'session_id', given.session_id, 'namespaces', reset::text);
  END IF;
  IF given.checkpoint IS NOT NULL THEN
    new_checkpoint := json_populate_record(NULL::{checkpoint}, given.checkpoint);
    IF NOT {is_next_checkpoint_v1}(new_checkpoint) THEN
      RETURN {checkpoint_conflict_v1}(new_checkpoint);
    END IF;
    PERFORM {append_checkpoint_v1}(new_checkpoint, given.keep, at);
  END IF;

  PERFORM {append_messages_v1}(given.session_id, given.messages, turn.id, turn.orchestrator, at);
  IF given.state_changes IS NOT NULL THEN
    PERFORM {append_to_document_v1}(change.value, at) FROM json_array_elements(given.state_changes) AS change;
  END IF;
  IF given.status IN ('awaiting-input', 'completed') THEN
    session_change := {touch_session_of_turn_v1}(given.session_id, given.session_ttl_ms, at);
  END IF;
  turn.settled_fence := given.fence;
  turn.turn_index := new_checkpoint.turn_index;
  turn.reply := given.reply;
  turn.error := given.error;
  turn.report := given.report;
  turn.spent := COALESCE(given.usage, turn.spent);
  turn.failures := turn.failures + CASE given.status WHEN 'failed' THEN 1 ELSE 0 END;
  turn := {end_turn_v1}(turn, given.status, at);
  lane.depth := lane.depth - 1;
  PERFORM {rest_lane_v1}(lane, at);
  RETURN {hand_over_v1}(turn, given.next, session_change, at);
END $$;
