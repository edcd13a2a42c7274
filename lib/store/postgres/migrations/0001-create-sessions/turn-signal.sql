-- Operations of other processes on a turn by its id.

-- Returns the locked lane of a turn, or NULL columns if the turn does not exist.
CREATE FUNCTION {lock_lane_of_v1}(of_turn text) RETURNS {lane} LANGUAGE plpgsql AS $$
DECLARE
  of_session text;
BEGIN
  SELECT session_id INTO of_session FROM {turn} WHERE id = of_turn;
  RETURN {lock_lane_v1}(of_session, false);
END $$;

-- The first payload of a name counts. A turn that waits for it continues.
CREATE FUNCTION {signal_v1}(args json) RETURNS json LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  given record;
  lane {lane};
  turn {turn};
  at bigint;
  notify boolean := false;
BEGIN
  SELECT * INTO given FROM json_to_record(args) AS a(turn_id text, name text, payload text);
  lane := {lock_lane_of_v1}(given.turn_id);
  at := {now_v1}();
  SELECT * INTO turn FROM {turn} WHERE id = given.turn_id AND session_id = lane.session_id;
  IF NOT FOUND THEN
    RETURN json_build_object('refused', 'TURN_NOT_FOUND', 'turn_id', given.turn_id);
  END IF;
  IF EXISTS (SELECT FROM {signal} WHERE turn_id = turn.id AND name = given.name) THEN
    RETURN json_build_object('turn', row_to_json(turn), 'accepted', false, 'notify', false);
  END IF;
  IF turn.settled_at IS NOT NULL THEN
    RETURN json_build_object('refused', 'TURN_SETTLED', 'turn', row_to_json(turn));
  END IF;

  INSERT INTO {signal} (turn_id, name, payload) VALUES (turn.id, given.name, given.payload);
  IF turn.status = 'waiting' AND turn.wait_signal = given.name THEN
    PERFORM {store_wait_result_v1}(turn, '{"received":true,"payload":' || given.payload || '}');
    UPDATE {turn} SET status = 'queued', wait_signal = NULL, wait_step = NULL, wait_until = NULL
      WHERE id = turn.id RETURNING * INTO turn;
    PERFORM {changed_v1}(turn.id);
    notify := {rest_lane_v1}(lane, at);
  END IF;
  RETURN json_build_object('turn', row_to_json(turn), 'accepted', true, 'notify', notify);
END $$;

-- Marks a running turn for its worker to settle. Stops a queued or waiting turn.
CREATE FUNCTION {cancel_v1}(args json) RETURNS json LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  of_turn text := args ->> 'turn_id';
  mode text := args ->> 'mode';
  to_keep text := args ->> 'keep';
  lane {lane};
  turn {turn};
  was_head boolean;
  at bigint;
  notify boolean := false;
BEGIN
  lane := {lock_lane_of_v1}(of_turn);
  at := {now_v1}();
  SELECT * INTO turn FROM {turn} WHERE id = of_turn AND session_id = lane.session_id;
  IF NOT FOUND THEN
    RETURN json_build_object('refused', 'TURN_NOT_FOUND', 'turn_id', of_turn);
  END IF;
  IF turn.status = 'running' THEN
    turn := {mark_turn_v1}(of_turn, mode, to_keep);
  ELSIF turn.settled_at IS NULL THEN
    was_head := ({head_v1}(turn.session_id)).id = of_turn;
    turn.keep := to_keep;
    turn := {stop_turn_v1}(turn, CASE WHEN turn.started_at IS NULL THEN 'cancel' ELSE mode END, at);
    lane.depth := lane.depth - 1;
    -- A turn behind the head does not change the lane. A new head may be due immediately.
    IF was_head THEN
      notify := {rest_lane_v1}(lane, at);
    ELSE
      UPDATE {lane} SET depth = lane.depth WHERE session_id = lane.session_id;
    END IF;
  END IF;
  RETURN json_build_object('turn', row_to_json(turn), 'notify', notify);
END $$;
