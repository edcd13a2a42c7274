-- Deletes old data of the ledger.

-- Turns that are locked now (by an expired idempotency key, or a deletion of their session) are left to the next run.
CREATE FUNCTION {purge_settled_v1}(args json) RETURNS json LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  -- A variable, because PostgreSQL does not use a volatile function as a bound of an index.
  before bigint := {now_v1}() - (args ->> 'older_than_ms')::bigint;
  old text[] := ARRAY(
    SELECT id FROM {turn} WHERE settled_at < before
    ORDER BY settled_at LIMIT (args ->> 'max_turns')::bigint FOR UPDATE SKIP LOCKED
  );
BEGIN
  DELETE FROM {step} WHERE turn_id = ANY(old);
  DELETE FROM {signal} WHERE turn_id = ANY(old);
  DELETE FROM {turn_event} WHERE turn_id = ANY(old);
  DELETE FROM {turn} WHERE id = ANY(old);
  RETURN to_json(cardinality(old));
END $$;
