-- How a turn's steps are stored, and how a turn goes back into its lane or is stopped.

-- The turn that a hold is for, or NULL when it is no longer the lane's current one.
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

-- A step that is stored keeps its first value. Gives the value that is stored.
CREATE FUNCTION {store_step_v1}(of_turn text, key json, given text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  step {step} := json_populate_record(NULL::{step}, key);
BEGIN
  step.turn_id := of_turn;
  step.value := given;
  INSERT INTO {step} SELECT step.* ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    SELECT * INTO step FROM {step} AS stored
    WHERE stored.turn_id = of_turn AND stored.id = step.id;
  END IF;
  RETURN step.value;
END $$;

-- What a waiting turn waited for becomes the result of the step that it named.
CREATE FUNCTION {store_wait_result_v1}(turn {turn}, result text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF turn.wait_step IS NOT NULL THEN
    PERFORM {store_step_v1}(turn.id, turn.wait_step::json, result);
  END IF;
END $$;

-- The body of the user's message, out of a turn's request; NULL when that is a command or unlogged. PostgreSQL reads no
-- JSON that holds a NUL or half of a surrogate pair, so every escape is put away before it looks, and brought back in
-- what it found.
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

-- Asks the worker of a running turn to stop it. The first mark stays.
CREATE FUNCTION {mark_turn_v1}(of_turn text, mode text) RETURNS {turn} LANGUAGE plpgsql AS $$
DECLARE
  turn {turn};
BEGIN
  UPDATE {turn} SET cancel_mode = COALESCE(cancel_mode, mode) WHERE id = of_turn RETURNING * INTO turn;
  PERFORM {changed_v1}(of_turn);
  RETURN turn;
END $$;

-- Ends a turn that was asked to stop and that no worker settles; interrupted, what the user said stays, unless the
-- conversation was reset since the turn began.
CREATE FUNCTION {stop_turn_v1}(turn {turn}, mode text, at bigint) RETURNS {turn} LANGUAGE plpgsql AS $$
DECLARE
  lane {lane};
  body text;
  said json;
BEGIN
  IF mode = 'interrupt' THEN
    SELECT * INTO lane FROM {lane} WHERE session_id = turn.session_id;
    IF {reset_since_v1}(lane, turn, '["agent-sessions:conversation"]') IS NULL THEN
      body := {user_message_body_v1}(turn.request);
    END IF;
  END IF;
  IF body IS NOT NULL THEN
    said := json_build_object('id', turn.id || '.0', 'role', 'user', 'body', body);
    PERFORM {append_messages_v1}(turn.session_id, json_build_array(said), turn.id, turn.orchestrator, at);
  END IF;
  RETURN {end_turn_v1}(turn, 'cancelled', at);
END $$;

-- How a turn that has lost its attempt must end instead of getting another one; NULL: it may go on.
CREATE FUNCTION {end_before_next_attempt_v1}(turn {turn}) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  IF turn.cancel_mode IS NULL AND EXISTS (SELECT FROM {session} WHERE id = turn.session_id AND state = 'expired') THEN
    RETURN 'cancel';
  END IF;
  RETURN turn.cancel_mode;
END $$;

-- Puts a held turn back into its lane, changed. One that was asked to stop, or whose session expired, ends instead:
-- it would hold up the turn that it was to make room for, or come to life in a session that is over.
CREATE FUNCTION {put_back_v1}(lane {lane}, held {turn}, parked {turn}, at bigint) RETURNS {turn}
LANGUAGE plpgsql AS $$
DECLARE
  mode text := {end_before_next_attempt_v1}(held);
BEGIN
  IF mode IS NULL THEN
    UPDATE {turn} SET
      status = parked.status, failures = parked.failures, error = parked.error, due_at = parked.due_at,
      wait_signal = parked.wait_signal, wait_step = parked.wait_step, wait_until = parked.wait_until
    WHERE id = held.id;
    PERFORM {changed_v1}(held.id);
  ELSE
    parked := {stop_turn_v1}(held, mode, at);
    lane.depth := lane.depth - 1;
  END IF;
  PERFORM {rest_lane_v1}(lane, at);
  RETURN parked;
END $$;
