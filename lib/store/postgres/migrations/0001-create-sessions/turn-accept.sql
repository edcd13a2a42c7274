-- TurnLedger.accept: first whether another session has the id, then repeats, then the session and its lane, then policy
-- and limits, then the new turn and its claim.

-- Returns the reason why a session does not accept turns, or NULL.
CREATE FUNCTION {session_refusal_v1}(session {session}, max_lifetime bigint, at bigint) RETURNS json
LANGUAGE plpgsql AS $$
BEGIN
  IF session.state = 'expired' OR at - session.created_at > max_lifetime THEN
    RETURN json_build_object('refused', 'SESSION_STATE', 'session_id', session.id,
      'state', 'expired', 'attempted', 'accept a turn');
  END IF;
  RETURN NULL;
END $$;

-- Returns the reason why a lane does not accept another turn, or NULL.
CREATE FUNCTION {lane_refusal_v1}(lane {lane}, head {turn}, when_busy text, max_queued bigint, at bigint)
RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  queued bigint := lane.depth;
BEGIN
  IF lane.mode = 'draining' OR {mode_of_all_v1}() = 'draining' THEN
    RETURN json_build_object('refused', 'LANE_DRAINING', 'session_id', lane.session_id);
  END IF;
  IF head.id IS NOT NULL AND when_busy = 'reject' THEN
    RETURN json_build_object('refused', 'SESSION_BUSY', 'session_id', lane.session_id, 'turn_id', head.id,
      'alive', lane.running_turn IS NOT NULL AND lane.lease_until > at,
      'since', COALESCE(head.started_at, head.accepted_at));
  END IF;
  -- Superseded turns free their slots. The turn that holds the lane does not count as queued.
  IF when_busy IN ('latest', 'replace') THEN
    queued := 0;
  ELSIF head.started_at IS NOT NULL THEN
    queued := queued - 1;
  END IF;
  IF queued >= max_queued THEN
    RETURN json_build_object('refused', 'LANE_FULL', 'session_id', lane.session_id, 'limit', max_queued);
  END IF;
  RETURN NULL;
END $$;

-- Applies "when_busy", and returns the lane without the turns that ended. A turn holds the lane from its first claim on,
-- also while it is queued again.
CREATE FUNCTION {make_room_v1}(lane {lane}, head {turn}, for_turn text, when_busy text, at bigint) RETURNS {lane}
LANGUAGE plpgsql AS $$
DECLARE
  mode text := CASE when_busy WHEN 'rollback' THEN 'rollback' WHEN 'latest' THEN NULL ELSE 'interrupt' END;
  queued {turn};
BEGIN
  IF when_busy IN ('latest', 'replace') THEN
    FOR queued IN
      SELECT * FROM {turn}
      WHERE session_id = lane.session_id AND settled_at IS NULL AND started_at IS NULL ORDER BY position
    LOOP
      queued.superseded_by := for_turn;
      PERFORM {end_turn_v1}(queued, 'superseded', at);
      lane.depth := lane.depth - 1;
    END LOOP;
  END IF;
  IF mode IS NULL OR head.started_at IS NULL THEN
    RETURN lane;
  END IF;
  IF head.status <> 'running' THEN
    PERFORM {stop_turn_v1}(head, mode, at);
    lane.depth := lane.depth - 1;
  ELSIF head.cancel_mode IS NULL THEN
    UPDATE {turn} SET cancel_mode = mode WHERE id = head.id;
    PERFORM {changed_v1}(head.id);
  END IF;
  RETURN lane;
END $$;

CREATE FUNCTION {accept_v1}(args json) RETURNS json LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  given {turn} := json_populate_record(NULL::{turn}, args);
  asked record;
  session {session};
  lane {lane};
  known {turn};
  head {turn};
  forgotten text;
  refusal json;
  claimed json;
  at bigint;
  notify boolean := false;
BEGIN
  SELECT * INTO asked FROM json_to_record(args)
    AS a(when_busy text, max_queued bigint, ttl_ms bigint, max_lifetime_ms bigint, foreign_session boolean,
      require_session json, claim json);
  -- Lanes of other sessions exist since the sessions were created.
  IF asked.foreign_session AND NOT {open_lane_v1}(given.session_id) THEN
    RETURN json_build_object('refused', 'SESSION_NOT_FOUND', 'session_id', given.session_id);
  END IF;
  lane := {lock_lane_v1}(given.session_id, false);
  at := {now_v1}();

  IF NOT asked.foreign_session THEN
    SELECT * INTO session FROM {session} WHERE id = given.session_id;
    -- First, because another session may have a turn with the same key.
    IF {is_other_session_v1}(session, asked.require_session) THEN
      RETURN json_build_object('refused', 'SESSION_NOT_FOUND', 'session_id', given.session_id);
    END IF;
  END IF;
  SELECT * INTO known FROM {turn} WHERE id = given.id;
  IF NOT FOUND AND given.idempotency_key IS NOT NULL THEN
    SELECT * INTO known FROM {turn}
      WHERE session_id = given.session_id AND idempotency_key = given.idempotency_key;
    IF known.settled_at + asked.ttl_ms <= at THEN
      forgotten := known.id;
      known := NULL;
    ELSIF known.id IS NOT NULL AND known.request_hash IS DISTINCT FROM given.request_hash THEN
      RETURN json_build_object('refused', 'IDEMPOTENCY_CONFLICT', 'session_id', given.session_id, 'turn_id', known.id);
    END IF;
  END IF;
  IF known.id IS NOT NULL THEN
    -- The client that claimed the turn on acceptance may not have received the response.
    IF asked.claim IS NOT NULL AND lane.running_turn = known.id AND lane.holder = asked.claim ->> 'holder'
        AND lane.lease_until > at THEN
      claimed := {claimed_v1}(lane, known, asked.claim);
    END IF;
    RETURN json_build_object('turn', row_to_json(known), 'duplicate', true, 'notify', known.status = 'queued',
      'claimed', claimed);
  END IF;

  -- An erased session has no row. One that was created meanwhile has no lane here yet: it did not exist at the start.
  IF lane.session_id IS NULL OR (session.id IS NULL AND NOT asked.foreign_session) THEN
    RETURN json_build_object('refused', 'SESSION_NOT_FOUND', 'session_id', given.session_id);
  END IF;
  IF NOT asked.foreign_session THEN
    refusal := {session_refusal_v1}(session, asked.max_lifetime_ms, at);
    IF refusal IS NOT NULL THEN
      RETURN refusal;
    END IF;
  END IF;
  IF lane.depth > 0 THEN
    head := {head_v1}(given.session_id);
  END IF;
  refusal := {lane_refusal_v1}(lane, head, asked.when_busy, asked.max_queued, at);
  IF refusal IS NOT NULL THEN
    RETURN refusal;
  END IF;

  -- From here on, the key belongs to another turn.
  IF forgotten IS NOT NULL THEN
    UPDATE {turn} SET idempotency_key = NULL WHERE id = forgotten;
  END IF;
  IF head.id IS NOT NULL AND asked.when_busy <> 'enqueue' THEN
    lane := {make_room_v1}(lane, head, given.id, asked.when_busy, at);
  END IF;
  given.position := lane.next_position;
  given.status := 'queued';
  given.failures := 0;
  given.lost := 0;
  given.lost_since_step := 0;
  given.accepted_at := at;
  INSERT INTO {turn} SELECT given.*;
  lane.next_position := lane.next_position + 1;
  lane.depth := lane.depth + 1;
  IF asked.claim IS NOT NULL AND lane.depth = 1 AND NOT {is_paused_v1}(lane) THEN
    claimed := {give_v1}(lane, given, asked.claim, at);
  ELSIF lane.running_turn IS NULL AND head.id IS DISTINCT FROM ({head_v1}(given.session_id)).id THEN
    notify := {rest_lane_v1}(lane, at);
  ELSE
    -- Behind a head that keeps its position, the lane is or will be visited.
    UPDATE {lane} SET next_position = lane.next_position, depth = lane.depth WHERE session_id = given.session_id;
  END IF;
  RETURN json_build_object('turn', row_to_json(given), 'duplicate', false, 'notify', notify, 'claimed', claimed);
END $$;
