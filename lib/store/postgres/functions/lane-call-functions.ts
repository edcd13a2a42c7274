/** What is done in one session's lane, and may share a statement. */
const OPERATIONS = [
  'accept_v1',
  'claim_v1',
  'renew_v1',
  'settle_v1',
  'retry_v1',
  'release_v1',
  'wait_v1',
  'save_awaited_v1',
  'save_step_v1',
  'append_events_v1',
];

/** Calls one of them by its name, so that the text of a statement does not depend on which calls share it. */
export const LANE_CALL_FUNCTIONS: readonly string[] = [
  `CREATE FUNCTION {lane_call_v1}(operation text, args json) RETURNS json LANGUAGE plpgsql AS $$
  BEGIN
    CASE operation
      ${OPERATIONS.map((name) => `WHEN '${name}' THEN RETURN {${name}}(args);`).join('\n      ')}
    END CASE;
  END $$`,
];
