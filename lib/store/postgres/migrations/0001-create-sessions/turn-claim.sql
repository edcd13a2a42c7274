-- TurnLedger.claim: claims the head of the lane if it is due and no live lease holds it.

-- Returns the data for the worker of a turn.
CREATE FUNCTION {claimed_v1}(lane {lane}, turn {turn}, request json) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  latest {checkpoint} := {latest_checkpoint_v1}(turn.orchestrator, turn.session_id);
BEGIN
  RETURN json_build_object(
    'fence', lane.fence,
    'turn', row_to_json(turn),
    'session', (SELECT row_to_json(session) FROM {session} AS session WHERE session.id = turn.session_id),
    'checkpoint', CASE WHEN latest.session_id IS NOT NULL THEN row_to_json(latest) END,
    'history', {window_v1}(turn.session_id, (request -> 'windows' ->> turn.orchestrator)::bigint),
    'steps', (SELECT COALESCE(json_agg(row_to_json(step)), '[]') FROM {step} AS step WHERE step.turn_id = turn.id),
    'documents', {documents_v1}(turn.session_id, request -> 'documents' -> turn.orchestrator),
    'epochs', lane.epochs
  );
END $$;

-- Returns a lost turn, already counted, in its new state: running, queued after a pause, or ended.
CREATE FUNCTION {after_loss_v1}(head {turn}, claim json, at bigint) RETURNS {turn} LANGUAGE plpgsql AS $$
DECLARE
  pause_ms bigint := COALESCE((claim ->> 'loss_pause_ms')::bigint, 0);
  max_lost bigint := (claim ->> 'max_lost')::bigint;
BEGIN
  IF head.lost_since_step >= max_lost OR head.lost >= 10 * max_lost THEN
    head.error := json_build_object(
      'name', 'WorkerLostError',
      'code', 'WORKER_LOST',
      'message', format('The process that ran the turn was lost %s times, %s of them since its last step.',
        head.lost, head.lost_since_step)
    )::text;
    RETURN {end_turn_v1}(head, 'failed', at);
  END IF;
  IF head.lost >= 2 THEN
    UPDATE {turn} SET
      status = 'queued',
      due_at = at + LEAST(
        pause_ms * 2 ^ LEAST(head.lost - 2, 32),
        COALESCE((claim ->> 'max_loss_pause_ms')::bigint, pause_ms)
      )
    WHERE id = head.id RETURNING * INTO head;
    PERFORM {changed_v1}(head.id);
  END IF;
  RETURN head;
END $$;

-- The caller may have set depth and next_position.
CREATE FUNCTION {give_v1}(lane {lane}, head {turn}, request json, at bigint) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  lease_end bigint := at + (request ->> 'lease_ms')::bigint;
  -- At least the clock, so that neither a recreated lane nor a standby without the last seconds repeats a fence.
  next_fence bigint := greatest(lane.fence + 1, at);
BEGIN
  UPDATE {turn} SET
    status = 'running', started_at = COALESCE(started_at, at),
    epochs = CASE WHEN started_at IS NULL THEN lane.epochs ELSE epochs END,
    due_at = NULL, wait_signal = NULL, wait_step = NULL, wait_until = NULL
  WHERE id = head.id RETURNING * INTO head;
  UPDATE {lane} SET
    next_position = lane.next_position, depth = lane.depth,
    fence = next_fence, running_turn = head.id, holder = request ->> 'holder',
    lease_until = lease_end, attention_at = lease_end, offers = 0
  WHERE session_id = lane.session_id RETURNING * INTO lane;
  RETURN {claimed_v1}(lane, head, request);
END $$;

-- The caller has locked the lane. Returns the claimed turn if there is one, the lost turn with its holder,
-- and whether the head is a suspect that the request does not accept.
CREATE FUNCTION {claim_head_v1}(of_session text, request json, at bigint) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  lane {lane};
  head {turn};
  mode text;
  lost_turn json;
  lost_by text;
  is_suspect boolean := false;
  claimed json;
BEGIN
  LOOP
    SELECT * INTO lane FROM {lane} WHERE session_id = of_session AND depth > 0;
    EXIT WHEN NOT FOUND;
    head := {head_v1}(of_session);
    IF head.status = 'running' THEN
      IF lane.lease_until > at THEN
        -- A repeated claim gets the same response.
        IF lane.holder = request ->> 'holder' THEN
          claimed := {claimed_v1}(lane, head, request);
        END IF;
        EXIT;
      END IF;
    ELSIF NOT {is_due_v1}(head, at) THEN
      EXIT;
    END IF;
    EXIT WHEN {is_paused_v1}(lane);
    IF head.status = 'running' THEN
      mode := {end_before_next_attempt_v1}(head);
      IF mode IS NOT NULL THEN
        head := {stop_turn_v1}(head, mode, at);
      ELSE
        UPDATE {turn} SET lost = lost + 1, lost_since_step = lost_since_step + 1 WHERE id = head.id RETURNING * INTO head;
        head := {after_loss_v1}(head, request, at);
        lost_turn := row_to_json(head);
        lost_by := lane.holder;
      END IF;
      IF head.status <> 'running' THEN
        -- The turn waits for its next attempt, or it ended and another turn is the head.
        lane.depth := lane.depth - CASE head.status WHEN 'queued' THEN 0 ELSE 1 END;
        PERFORM {rest_lane_v1}(lane, at);
        CONTINUE;
      END IF;
    ELSIF head.lost >= 2 AND NOT COALESCE((request ->> 'suspects')::boolean, false) THEN
      is_suspect := true;
      EXIT;
    ELSIF head.status = 'waiting' THEN
      PERFORM {store_wait_result_v1}(head, '{"received":false}');
    END IF;
    claimed := {give_v1}(lane, head, request, at);
    EXIT;
  END LOOP;
  RETURN json_build_object('claimed', claimed, 'lost', lost_turn, 'lost_by', lost_by, 'suspect', is_suspect);
END $$;

CREATE FUNCTION {claim_v1}(args json) RETURNS json LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  lane {lane} := {lock_lane_v1}(args ->> 'session_id', false);
BEGIN
  RETURN {claim_head_v1}(lane.session_id, args -> 'request', {now_v1}());
END $$;
