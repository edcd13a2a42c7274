-- Storing a turn's steps, and returning or stopping a turn.

-- Returns the turn of a hold, or NULL if it is not the lane's current turn.
CREATE FUNCTION {held_v1}(lane {lane}, of_turn text, with_fence bigint) RETURNS {turn} LANGUAGE plpgsql AS $$
DECLARE
  held {turn};
BEGIN
  IF lane.running_turn = of_turn AND lane.fence = with_fence THEN
    SELECT * INTO held FROM {turn} WHERE id = of_turn;
  END IF;
  RETURN held;
END $$;

CREATE FUNCTION {fenced_v1}(of_session text, of_turn text, with_fence bigint) RETURNS json LANGUAGE sql AS $$
  SELECT json_build_object('refused', 'TURN_FENCED', 'session_id', of_session, 'turn_id', of_turn, 'fence', with_fence)
$$;

-- A stored step keeps its first value. Returns the stored value.
CREATE FUNCTION {store_step_v1}(of_turn {turn}, key json, given text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  step {step} := json_populate_record(NULL::{step}, key);
BEGIN
  step.turn_id := of_turn.id;
  step.value := given;
  INSERT INTO {step} SELECT step.* ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    SELECT * INTO step FROM {step} AS stored
    WHERE stored.turn_id = of_turn.id AND stored.id = step.id;
  ELSIF of_turn.lost_since_step > 0 THEN
    UPDATE {turn} SET lost_since_step = 0 WHERE id = of_turn.id;
  END IF;
  RETURN step.value;
END $$;

-- The received signal becomes the result of the step that the turn named.
CREATE FUNCTION {store_wait_result_v1}(turn {turn}, result text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF turn.wait_step IS NOT NULL THEN
    PERFORM {store_step_v1}(turn, turn.wait_step::json, result);
  END IF;
END $$;

-- Returns the body of the user's message from a turn's request; NULL for a command or an unlogged message. PostgreSQL
-- cannot parse JSON with NUL or half a surrogate pair, so escapes are replaced before parsing and restored
-- afterwards.
CREATE FUNCTION {user_message_body_v1}(request text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  parsed json;
  input json;
  body text;
BEGIN
  body := replace(replace(replace(request, E'\\\\', chr(1)), E'\\"', chr(2)), E'\\', chr(3));
  body := replace(replace(replace(body, chr(1), E'\\\\b'), chr(2), E'\\\\q'), chr(3), E'\\\\e');
  parsed := body::json;
  IF parsed -> 'command' IS NOT NULL OR parsed -> 'unlogged' IS NOT NULL THEN RETURN NULL; END IF;
  input := parsed -> 'input';
  body := '{"content":' || COALESCE(input -> 'content', input -> 'text')::text
    || COALESCE(',"metadata":' || (input -> 'metadata')::text, '') || '}';
  RETURN replace(replace(replace(body, E'\\\\q', E'\\"'), E'\\\\e', E'\\'), E'\\\\b', E'\\\\');
END $$;

-- Asks the worker of a running turn to stop it. The first request stays.
CREATE FUNCTION {mark_turn_v1}(of_turn text, mode text, to_keep text) RETURNS {turn} LANGUAGE plpgsql AS $$
DECLARE
  turn {turn};
BEGIN
  UPDATE {turn} SET
    keep = CASE WHEN cancel_mode IS NULL THEN to_keep ELSE keep END, cancel_mode = COALESCE(cancel_mode, mode)
  WHERE id = of_turn RETURNING * INTO turn;
  PERFORM {changed_v1}(of_turn);
  RETURN turn;
END $$;

-- Ends a cancelled turn that no worker settles. An interrupted turn keeps the user's message and the messages to keep,
-- unless the conversation was reset since the turn began.
CREATE FUNCTION {stop_turn_v1}(turn {turn}, mode text, at bigint) RETURNS {turn} LANGUAGE plpgsql AS $$
DECLARE
  lane {lane};
  body text;
  said text;
BEGIN
  IF mode = 'interrupt' THEN
    SELECT * INTO lane FROM {lane} WHERE session_id = turn.session_id;
    IF {reset_since_v1}(lane, turn, '["agent-sessions:conversation"]') IS NULL THEN
      body := {user_message_body_v1}(turn.request);
    END IF;
  END IF;
  IF body IS NOT NULL THEN
    said := '[' || json_build_object('id', turn.id || '.0', 'role', 'user', 'body', body)::text;
    -- Both are JSON arrays as strings.
    said := CASE WHEN turn.keep IS NULL THEN said || ']' ELSE said || ',' || substr(turn.keep, 2) END;
    PERFORM {append_messages_v1}(turn.session_id, said::json, turn.id, turn.orchestrator, at);
  END IF;
  RETURN {end_turn_v1}(turn, 'cancelled', at);
END $$;

-- Returns how a turn that lost its attempt must end, or NULL if it may continue.
CREATE FUNCTION {end_before_next_attempt_v1}(turn {turn}) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  IF turn.cancel_mode IS NULL AND EXISTS (SELECT FROM {session} WHERE id = turn.session_id AND state = 'expired') THEN
    RETURN 'cancel';
  END IF;
  RETURN turn.cancel_mode;
END $$;

-- Returns a held turn to its lane, changed. It ends instead if it was cancelled, or if its session expired: otherwise it
-- would block the turn that replaces it, or run in an ended session.
CREATE FUNCTION {put_back_v1}(lane {lane}, held {turn}, awaiting {turn}, at bigint) RETURNS {turn}
LANGUAGE plpgsql AS $$
DECLARE
  mode text := {end_before_next_attempt_v1}(held);
BEGIN
  IF mode IS NULL THEN
    UPDATE {turn} SET
      status = awaiting.status, failures = awaiting.failures, error = awaiting.error, due_at = awaiting.due_at,
      wait_signal = awaiting.wait_signal, wait_step = awaiting.wait_step, wait_others = awaiting.wait_others,
      wait_until = awaiting.wait_until
    WHERE id = held.id;
    PERFORM {changed_v1}(held.id);
  ELSE
    awaiting := {stop_turn_v1}(held, mode, at);
    lane.depth := lane.depth - 1;
  END IF;
  PERFORM {rest_lane_v1}(lane, at);
  RETURN awaiting;
END $$;
