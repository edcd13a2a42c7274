-- LeaseStore: a lease's row is its lock.

-- The row stays after a release, so that the fence keeps growing.
CREATE FUNCTION {acquire_lease_v1}(args json) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  given record;
  stored {lease};
BEGIN
  SELECT * INTO given FROM json_to_record(args) AS arg(name text, holder text, ttl_ms bigint);
  INSERT INTO {lease} AS own VALUES (given.name, given.holder, 1, {now_v1}() + given.ttl_ms)
    ON CONFLICT (name) DO UPDATE SET
      holder = given.holder, expires_at = {now_v1}() + given.ttl_ms,
      fence = own.fence + CASE WHEN own.holder = given.holder THEN 0 ELSE 1 END
    WHERE own.holder = given.holder OR own.expires_at <= {now_v1}()
    RETURNING * INTO stored;
  RETURN CASE WHEN FOUND THEN row_to_json(stored) ELSE 'null' END;
END $$;

-- A time to live of 0 releases the lease. Returns whether the caller still held it.
CREATE FUNCTION {renew_lease_v1}(args json) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  given record;
  now bigint;
BEGIN
  SELECT * INTO given FROM json_to_record(args) AS arg(name text, holder text, fence bigint, ttl_ms bigint);
  PERFORM 1 FROM {lease} WHERE name = given.name FOR UPDATE;
  now := {now_v1}();
  UPDATE {lease} SET expires_at = now + given.ttl_ms
    WHERE name = given.name AND holder = given.holder AND fence = given.fence AND expires_at > now;
  RETURN to_json(FOUND);
END $$;
