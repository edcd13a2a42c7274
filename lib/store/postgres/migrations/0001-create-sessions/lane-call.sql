-- Calls an operation on one session's lane by name, so that the statement's text does not depend on the calls that
-- share it.

CREATE FUNCTION {lane_call_v1}(operation text, args json) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  CASE operation
    WHEN 'accept_v1' THEN RETURN {accept_v1}(args);
    WHEN 'claim_v1' THEN RETURN {claim_v1}(args);
    WHEN 'renew_v1' THEN RETURN {renew_v1}(args);
    WHEN 'settle_v1' THEN RETURN {settle_v1}(args);
    WHEN 'retry_v1' THEN RETURN {retry_v1}(args);
    WHEN 'release_v1' THEN RETURN {release_v1}(args);
    WHEN 'wait_v1' THEN RETURN {wait_v1}(args);
    WHEN 'save_awaited_v1' THEN RETURN {save_awaited_v1}(args);
    WHEN 'save_step_v1' THEN RETURN {save_step_v1}(args);
    WHEN 'append_events_v1' THEN RETURN {append_events_v1}(args);
    ELSE RAISE EXCEPTION 'There is no operation %.', operation;
  END CASE;
END $$;
