/** StateStore. A document's row is its lock; the lock of all of a session's documents keeps the late ones out. */
export const DOCUMENT_FUNCTIONS: readonly string[] = [
  // Alone: to remove them all, or to leave a tombstone. A lane is not made for documents.
  `CREATE FUNCTION {lock_documents_v1}(of_session text, alone boolean) RETURNS void LANGUAGE plpgsql AS $$
  DECLARE
    lock bigint := hashtextextended(json_build_array({document'}, of_session)::text, 0);
  BEGIN
    IF alone THEN
      PERFORM pg_advisory_xact_lock(lock);
    ELSE
      PERFORM pg_advisory_xact_lock_shared(lock);
    END IF;
  END $$`,

  // Locked, also when it has expired: then it still takes up the key.
  `CREATE FUNCTION {lock_document_v1}(place {document}) RETURNS {document} LANGUAGE plpgsql AS $$
  DECLARE
    stored {document};
  BEGIN
    SELECT * INTO stored FROM {document}
      WHERE namespace = place.namespace AND scope = place.scope AND session_id = place.session_id AND key = place.key
      FOR UPDATE;
    RETURN stored;
  END $$`,

  `CREATE FUNCTION {is_document_live_v1}(stored {document}, at bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT stored.key IS NOT NULL AND COALESCE(stored.expires_at > at, true)
  $$`,

  // The document as it is now, or null when it has another version than expected.
  `CREATE FUNCTION {set_document_v1}(args json) RETURNS json LANGUAGE plpgsql AS $$
  DECLARE
    given {document} := json_populate_record(NULL::{document}, args);
    expected bigint := args ->> 'if_version';
    stored {document};
    now bigint;
  BEGIN
    PERFORM {lock_documents_v1}(given.session_id, false);
    IF {is_erased_v1}(given.session_id) THEN RETURN {session_missing_v1}(given.session_id); END IF;
    LOOP
      stored := {lock_document_v1}(given);
      now := {now_v1}();
      given.version := CASE WHEN {is_document_live_v1}(stored, now) THEN stored.version ELSE 0 END;
      IF expected <> given.version THEN RETURN 'null'; END IF;
      given.version := given.version + 1;
      given.expires_at := now + (args ->> 'ttl_ms')::bigint;
      IF stored.key IS NOT NULL THEN
        UPDATE {document} SET value = given.value, version = given.version, expires_at = given.expires_at
          WHERE namespace = given.namespace AND scope = given.scope AND session_id = given.session_id
            AND key = given.key;
      ELSE
        INSERT INTO {document} VALUES (given.*) ON CONFLICT DO NOTHING;
      END IF;
      -- Not so when somebody else has just made it.
      EXIT WHEN FOUND;
    END LOOP;
    RETURN row_to_json(given);
  END $$`,

  `CREATE FUNCTION {extend_document_v1}(args json) RETURNS json LANGUAGE plpgsql AS $$
  DECLARE
    place {document} := json_populate_record(NULL::{document}, args);
    stored {document} := {lock_document_v1}(place);
    now bigint := {now_v1}();
  BEGIN
    IF NOT {is_document_live_v1}(stored, now) THEN RETURN 'false'; END IF;
    UPDATE {document} SET expires_at = now + (args ->> 'ttl_ms')::bigint
      WHERE namespace = place.namespace AND scope = place.scope AND session_id = place.session_id AND key = place.key;
    RETURN 'true';
  END $$`,

  `CREATE FUNCTION {delete_document_v1}(args json) RETURNS json LANGUAGE plpgsql AS $$
  DECLARE
    place {document} := json_populate_record(NULL::{document}, args);
    stored {document} := {lock_document_v1}(place);
    now bigint := {now_v1}();
  BEGIN
    -- One that has come since is not this one's to remove.
    IF stored.key IS NULL THEN RETURN 'false'; END IF;
    DELETE FROM {document}
      WHERE namespace = place.namespace AND scope = place.scope AND session_id = place.session_id AND key = place.key;
    RETURN to_json({is_document_live_v1}(stored, now));
  END $$`,

  // Those that somebody is just writing live on.
  `CREATE FUNCTION {delete_expired_documents_v1}(args json) RETURNS json LANGUAGE plpgsql SET enable_seqscan = off AS $$
  DECLARE
    now bigint := {now_v1}();
    gone bigint;
  BEGIN
    DELETE FROM {document} WHERE ctid = ANY(ARRAY(
      SELECT ctid FROM {document} WHERE expires_at IS NOT NULL AND expires_at <= now
      ORDER BY expires_at LIMIT (args ->> 'max_documents')::bigint FOR UPDATE SKIP LOCKED
    ));
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN to_json(gone);
  END $$`,
];
