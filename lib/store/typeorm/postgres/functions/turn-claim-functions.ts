/** TurnLedger.claim: the head of the lane when it is due and nobody holds it with a live lease. */
export const TURN_CLAIM_FUNCTIONS: readonly string[] = [
  // What the worker of a turn is given.
  `CREATE FUNCTION {claimed_v1}(lane {lane}, turn {turn}, request json) RETURNS json LANGUAGE plpgsql AS $$
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
  END $$`,

  // A turn whose worker was lost: it gets another attempt unless it was to end anyway, or lapsed too often.
  `CREATE FUNCTION {after_lapse_v1}(head {turn}, max_attempts bigint, at bigint) RETURNS {turn} LANGUAGE plpgsql AS $$
  DECLARE
    mode text := {end_before_next_attempt_v1}(head);
  BEGIN
    IF mode IS NOT NULL THEN
      RETURN {stop_turn_v1}(head, mode, at);
    END IF;
    head.failures := head.failures + 1;
    IF head.failures < max_attempts THEN
      RETURN head;
    END IF;
    -- What the attempt before said is the better answer to why.
    head.error := COALESCE(head.error, json_build_object(
      'name', 'WorkerLostError',
      'code', 'WORKER_LOST',
      'message', format('The worker that ran the turn was lost; the turn was attempted %s times.', head.failures)
    )::text);
    RETURN {end_turn_v1}(head, 'failed', at);
  END $$`,

  // The caller may have counted depth and next_position.
  `CREATE FUNCTION {give_v1}(lane {lane}, head {turn}, request json, at bigint) RETURNS json LANGUAGE plpgsql AS $$
  DECLARE
    lease_end bigint := at + (request ->> 'lease_ms')::bigint;
    -- At least the clock: neither a lane made anew nor a standby without the last seconds gives a fence twice.
    next_fence bigint := greatest(lane.fence + 1, at);
  BEGIN
    UPDATE {turn} SET
      status = 'running', failures = head.failures, started_at = COALESCE(started_at, at),
      epochs = CASE WHEN started_at IS NULL THEN lane.epochs ELSE epochs END,
      due_at = NULL, wait_signal = NULL, wait_step = NULL, wait_until = NULL
    WHERE id = head.id RETURNING * INTO head;
    UPDATE {lane} SET
      next_position = lane.next_position, depth = lane.depth, fence = next_fence, running_turn = head.id, holder = request ->> 'holder',
      lease_until = lease_end, attention_at = lease_end, offers = 0
    WHERE session_id = lane.session_id RETURNING * INTO lane;
    RETURN {claimed_v1}(lane, head, request);
  END $$`,

  // The lane is locked by the caller. NULL: nothing to claim.
  `CREATE FUNCTION {claim_head_v1}(of_session text, request json, at bigint) RETURNS json LANGUAGE plpgsql AS $$
  DECLARE
    lane {lane};
    head {turn};
  BEGIN
    LOOP
      SELECT * INTO lane FROM {lane} WHERE session_id = of_session AND depth > 0;
      IF NOT FOUND THEN
        RETURN NULL;
      END IF;
      head := {head_v1}(of_session);
      IF head.status = 'running' THEN
        IF lane.lease_until > at THEN
          -- The same claim sent twice gets the same answer.
          RETURN CASE WHEN lane.holder = request ->> 'holder' THEN {claimed_v1}(lane, head, request) END;
        END IF;
      ELSIF NOT {is_due_v1}(head, at) THEN
        RETURN NULL;
      END IF;
      IF {is_paused_v1}(lane) THEN
        RETURN NULL;
      ELSIF head.status = 'waiting' THEN
        PERFORM {store_wait_result_v1}(head, '{"received":false}');
      ELSIF head.status = 'running' THEN
        head := {after_lapse_v1}(head, (request ->> 'max_attempts')::bigint, at);
      END IF;
      IF head.settled_at IS NULL THEN
        RETURN {give_v1}(lane, head, request, at);
      END IF;
      -- It ended instead, and another one is the head.
      lane.depth := lane.depth - 1;
      PERFORM {rest_lane_v1}(lane, at);
    END LOOP;
  END $$`,

  `CREATE FUNCTION {claim_v1}(args json) RETURNS json LANGUAGE plpgsql SET enable_seqscan = off AS $$
  DECLARE
    lane {lane} := {lock_lane_v1}(args ->> 'session_id', false);
  BEGIN
    RETURN {claim_head_v1}(lane.session_id, args -> 'request', {now_v1}());
  END $$`,
];
