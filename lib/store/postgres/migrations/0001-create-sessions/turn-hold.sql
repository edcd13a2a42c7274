-- Writes of a turn's holder while it runs, and the ways to return the turn.

-- Stores the tokens of a held turn. Returns the turn.
CREATE FUNCTION {record_spending_v1}(lane {lane}, held {turn}, usage text, change json) RETURNS {turn}
LANGUAGE plpgsql AS $$
BEGIN
  IF usage IS NULL THEN
    RETURN held;
  END IF;
  UPDATE {turn} SET spent = usage WHERE id = held.id;
  held.spent := usage;
  IF change IS NOT NULL AND {reset_since_v1}(lane, held, json_build_array(change ->> 'namespace')) IS NULL THEN
    PERFORM {lock_changed_documents_v1}(held.session_id, json_build_array(change));
    PERFORM {append_to_document_v1}(change, {now_v1}());
  END IF;
  RETURN held;
END $$;

CREATE FUNCTION {renew_v1}(args json) RETURNS json LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  given record;
  turn {turn};
  lease_end bigint;
BEGIN
  SELECT * INTO given FROM json_to_record(args) AS a(session_id text, turn_id text, fence bigint, lease_ms bigint);
  turn := {held_v1}({lock_lane_v1}(given.session_id, false), given.turn_id, given.fence);
  IF turn.id IS NULL THEN
    RETURN {fenced_v1}(given.session_id, given.turn_id, given.fence);
  END IF;
  lease_end := {now_v1}() + given.lease_ms;
  UPDATE {lane} SET lease_until = lease_end, attention_at = lease_end, offers = 0 WHERE session_id = given.session_id;
  RETURN json_build_object('cancel_mode', turn.cancel_mode);
END $$;

CREATE FUNCTION {save_awaited_v1}(args json) RETURNS json LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  given record;
  turn {turn};
BEGIN
  SELECT * INTO given FROM json_to_record(args) AS a(session_id text, turn_id text, fence bigint, awaited text);
  turn := {held_v1}({lock_lane_v1}(given.session_id, false), given.turn_id, given.fence);
  IF turn.id IS NULL THEN
    RETURN {fenced_v1}(given.session_id, given.turn_id, given.fence);
  END IF;
  UPDATE {lane} SET awaited = given.awaited WHERE session_id = given.session_id;
  RETURN json_build_object('saved', true);
END $$;

CREATE FUNCTION {save_step_v1}(args json) RETURNS json LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  given record;
  lane {lane};
  turn {turn};
BEGIN
  SELECT * INTO given FROM json_to_record(args) AS a(session_id text, turn_id text, fence bigint,
    step json, value text, usage text, change json);
  lane := {lock_lane_v1}(given.session_id, false);
  turn := {held_v1}(lane, given.turn_id, given.fence);
  IF turn.id IS NULL THEN
    RETURN {fenced_v1}(given.session_id, given.turn_id, given.fence);
  END IF;
  PERFORM {record_spending_v1}(lane, turn, given.usage, given.change);
  RETURN json_build_object('value', {store_step_v1}(turn, given.step, given.value));
END $$;

-- Returns the turn to the head of its lane, which waits for it.
CREATE FUNCTION {retry_v1}(args json) RETURNS json LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  given record;
  lane {lane};
  held {turn};
  awaiting {turn};
  at bigint;
BEGIN
  SELECT * INTO given FROM json_to_record(args)
    AS a(session_id text, turn_id text, fence bigint, error text, delay_ms bigint, usage text, change json);
  lane := {lock_lane_v1}(given.session_id, false);
  at := {now_v1}();
  held := {held_v1}(lane, given.turn_id, given.fence);
  IF held.id IS NULL THEN
    RETURN {fenced_v1}(given.session_id, given.turn_id, given.fence);
  END IF;
  held := {record_spending_v1}(lane, held, given.usage, given.change);
  awaiting := held;
  awaiting.status := 'queued';
  awaiting.failures := held.failures + 1;
  awaiting.error := given.error;
  awaiting.due_at := at + given.delay_ms;
  RETURN json_build_object('turn', row_to_json({put_back_v1}(lane, held, awaiting, at)));
END $$;

-- Returns the turn to the head of its lane, as if it had not been claimed.
CREATE FUNCTION {release_v1}(args json) RETURNS json LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  given record;
  lane {lane};
  held {turn};
  awaiting {turn};
  at bigint;
BEGIN
  SELECT * INTO given FROM json_to_record(args)
    AS a(session_id text, turn_id text, fence bigint, delay_ms bigint, usage text, change json);
  lane := {lock_lane_v1}(given.session_id, false);
  at := {now_v1}();
  held := {held_v1}(lane, given.turn_id, given.fence);
  IF held.id IS NULL THEN
    RETURN {fenced_v1}(given.session_id, given.turn_id, given.fence);
  END IF;
  held := {record_spending_v1}(lane, held, given.usage, given.change);
  awaiting := held;
  awaiting.status := 'queued';
  awaiting := {put_back_v1}(lane, held, awaiting, at);
  IF awaiting.status = 'queued' THEN
    -- Sets when the lane is due. Another worker may claim it earlier.
    UPDATE {lane} SET attention_at = CASE given.delay_ms WHEN 0 THEN 0 ELSE at + given.delay_ms END
    WHERE session_id = given.session_id;
  END IF;
  RETURN json_build_object('turn', row_to_json(awaiting));
END $$;

-- Lets the turn wait for a signal. If the signal has already arrived, the turn keeps running.
CREATE FUNCTION {wait_v1}(args json) RETURNS json LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  given record;
  lane {lane};
  held {turn};
  awaiting {turn};
  early text;
  at bigint;
BEGIN
  SELECT * INTO given FROM json_to_record(args) AS a(session_id text, turn_id text, fence bigint,
    signal text, step text, others text, timeout_ms bigint, usage text, change json);
  lane := {lock_lane_v1}(given.session_id, false);
  at := {now_v1}();
  held := {held_v1}(lane, given.turn_id, given.fence);
  IF held.id IS NULL THEN
    RETURN {fenced_v1}(given.session_id, given.turn_id, given.fence);
  END IF;
  SELECT payload INTO early FROM {signal} WHERE turn_id = held.id AND name = given.signal;
  IF FOUND THEN
    PERFORM {store_step_v1}(held, given.step::json, '{"received":true,"payload":' || early || '}');
    RETURN json_build_object('turn', row_to_json(held), 'payload', early);
  END IF;
  held := {record_spending_v1}(lane, held, given.usage, given.change);
  awaiting := held;
  awaiting.status := 'waiting';
  awaiting.wait_signal := given.signal;
  awaiting.wait_step := given.step;
  awaiting.wait_others := given.others;
  awaiting.wait_until := at + given.timeout_ms;
  RETURN json_build_object('turn', row_to_json({put_back_v1}(lane, held, awaiting, at)));
END $$;
