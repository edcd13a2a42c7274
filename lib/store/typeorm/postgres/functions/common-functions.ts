/** What the other functions share. Every function takes one json and gives one json; see postgres-database.ts. */
export const COMMON_FUNCTIONS: readonly string[] = [
  // Not now(), which stands still in a transaction that waited for a lock.
  `CREATE FUNCTION {now_v1}() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
  $$`,

  // Tells every process that listens, once it is committed.
  `CREATE FUNCTION {changed_v1}(turn_id text) RETURNS void LANGUAGE sql VOLATILE AS $$
    SELECT pg_notify({hints'}, turn_id)
  $$`,

  // The lock of everything that happens to a session's turns, messages and checkpoints: taken first, before any read.
  `CREATE FUNCTION {lock_lane_v1}(of_session text, make boolean) RETURNS {lane} LANGUAGE plpgsql AS $$
  DECLARE
    lane {lane};
  BEGIN
    SELECT * INTO lane FROM {lane} WHERE session_id = of_session FOR UPDATE;
    IF NOT FOUND AND make THEN
      -- The fence begins at the clock, so that a lane made anew never accepts an older worker.
      INSERT INTO {lane} (session_id, next_position, depth, fence, offers)
        VALUES (of_session, 1, 0, {now_v1}(), 0) ON CONFLICT DO NOTHING;
      SELECT * INTO lane FROM {lane} WHERE session_id = of_session FOR UPDATE;
    END IF;
    RETURN lane;
  END $$`,
];
