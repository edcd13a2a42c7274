-- StateStore. A row locks its document; an advisory lock on all documents of a session keeps late writers out.

-- Locks the documents of a session, which needs no lane. "alone" locks them exclusively: to remove all, to write a
-- tombstone, or to append to several at one time.
CREATE FUNCTION {lock_documents_v1}(of_session text, alone boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  lock bigint := hashtextextended(json_build_array({document'}, of_session)::text, 0);
BEGIN
  IF alone THEN
    PERFORM pg_advisory_xact_lock(lock);
  ELSE
    PERFORM pg_advisory_xact_lock_shared(lock);
  END IF;
END $$;

-- Locks an expired document, too, because it still occupies the key.
CREATE FUNCTION {lock_document_v1}(place {document}) RETURNS {document} LANGUAGE plpgsql AS $$
DECLARE
  stored {document};
BEGIN
  LOOP
    SELECT * INTO stored FROM {document}
      WHERE namespace = place.namespace AND scope = place.scope AND session_id = place.session_id AND key = place.key
      FOR UPDATE;
    -- A document that was removed during the wait may have been recreated.
    EXIT WHEN FOUND OR NOT EXISTS (
      SELECT FROM {document}
      WHERE namespace = place.namespace AND scope = place.scope AND session_id = place.session_id AND key = place.key
    );
  END LOOP;
  RETURN stored;
END $$;

-- While this lock is held, no other process creates or removes one of the documents.
CREATE FUNCTION {lock_changed_documents_v1}(of_session text, changes json) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM {lock_documents_v1}(of_session, true);
  PERFORM {lock_document_v1}(json_populate_record(NULL::{document}, change.value))
    FROM json_array_elements(changes) AS change;
END $$;

CREATE FUNCTION {is_document_live_v1}(stored {document}, at bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT stored.key IS NOT NULL AND COALESCE(stored.expires_at > at, true)
$$;

-- Returns the document in the form of the response. Batches are included unparsed, because quoting them again can double their size.
CREATE FUNCTION {shown_document_v1}(document {document}) RETURNS json LANGUAGE sql IMMUTABLE AS $$
  SELECT json_build_object('value', document.value, 'batches', document.batches::json, 'version', document.version,
    'created_at', document.created_at, 'accessed_at', document.accessed_at, 'expires_at', document.expires_at)
$$;

-- Replaces the locked document, which may not exist. Returns false if another process has just created one.
CREATE FUNCTION {write_document_v1}(written {document}, locked {document}) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF locked.key IS NULL THEN
    INSERT INTO {document} SELECT written.* ON CONFLICT DO NOTHING;
  ELSE
    -- An unchanged value is not stored again.
    UPDATE {document} AS document SET
      value = CASE WHEN written.value = locked.value THEN document.value ELSE written.value END,
      batches = written.batches, version = written.version,
      created_at = written.created_at, accessed_at = written.accessed_at, expires_at = written.expires_at
    WHERE namespace = locked.namespace AND scope = locked.scope AND session_id = locked.session_id
      AND key = locked.key;
  END IF;
  RETURN FOUND;
END $$;

-- Returns the reason to reject a write, or NULL. The session's documents are locked, so a delete of the session comes
-- before or after. "required" is true if the session must exist, or the created_at and user_id of the session that must
-- have the id.
CREATE FUNCTION {state_refusal_v1}(of_session text, required json) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  stored record;
BEGIN
  IF {is_erased_v1}(of_session) THEN RETURN {session_missing_v1}(of_session); END IF;
  IF coalesce(required::text, 'false') = 'false' THEN RETURN NULL; END IF;
  SELECT state, created_at, user_id INTO stored FROM {session} WHERE id = of_session;
  IF NOT FOUND THEN RETURN {session_missing_v1}(of_session); END IF;
  IF json_typeof(required) = 'object' THEN
    IF stored.created_at <> (required ->> 'created_at')::bigint OR stored.user_id <> required ->> 'user_id' THEN
      RETURN {session_missing_v1}(of_session);
    END IF;
  END IF;
  IF stored.state = 'expired' THEN
    RETURN json_build_object('refused', 'SESSION_STATE', 'session_id', of_session,
      'state', 'expired', 'attempted', 'write state');
  END IF;
  RETURN NULL;
END $$;

-- Returns the current document, or null if it has another version than expected.
CREATE FUNCTION {set_document_v1}(args json) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  given {document} := json_populate_record(NULL::{document}, args);
  expected bigint := (args ->> 'if_version')::bigint;
  stored {document};
  live boolean;
  now bigint;
  refusal json;
BEGIN
  PERFORM {lock_documents_v1}(given.session_id, false);
  refusal := {state_refusal_v1}(given.session_id, args -> 'require_session');
  IF refusal IS NOT NULL THEN RETURN refusal; END IF;
  LOOP
    stored := {lock_document_v1}(given);
    now := {now_v1}();
    live := {is_document_live_v1}(stored, now);
    given.version := CASE WHEN live THEN stored.version ELSE 0 END;
    IF expected <> given.version THEN RETURN 'null'::json; END IF;
    given.batches := '[]';
    given.version := {next_version_v1}(given.version);
    given.created_at := CASE WHEN live THEN stored.created_at ELSE now END;
    given.accessed_at := now;
    given.expires_at := now + (args ->> 'ttl_ms')::bigint;
    EXIT WHEN {write_document_v1}(given, stored);
  END LOOP;
  RETURN {shown_document_v1}(given);
END $$;

-- Returns the current document, or NULL columns if it does not exist. The caller has locked the session's documents. If
-- the caller passes the time, it has locked this document, too; otherwise the time is read under its lock. Entries are
-- a JSON array as a string, or NULL.
CREATE FUNCTION {append_to_document_v1}(args json, at bigint) RETURNS {document} LANGUAGE plpgsql AS $$
DECLARE
  place {document} := json_populate_record(NULL::{document}, args);
  given record;
  stored {document};
  document {document};
  live boolean;
  fold_end bigint;
  head text;
  bytes bytea;
  now bigint;
BEGIN
  SELECT * INTO given FROM json_to_record(args) AS a(id text, entries text, initial text, if_version bigint,
    ttl_ms bigint, keep_expiry boolean, fold_through text, fold_value text);
  -- Matches only the start of a batch, because quotes inside a string are escaped.
  head := '{"id":' || to_json(given.id) || ',';
  LOOP
    stored := {lock_document_v1}(place);
    now := COALESCE(at, {now_v1}());
    live := {is_document_live_v1}(stored, now);
    IF live THEN
      document := stored;
    ELSE
      document := place;
      document.value := given.initial;
      document.batches := '[]';
      document.version := 0;
      document.created_at := now;
    END IF;
    IF document.value IS NULL OR strpos(document.batches, head) > 0 OR given.if_version <> document.version THEN
      RETURN CASE WHEN live THEN stored END;
    END IF;
    document.accessed_at := now;
    document.expires_at := CASE WHEN live AND given.keep_expiry THEN stored.expires_at ELSE now + given.ttl_ms END;
    IF given.fold_through IS NOT NULL THEN
      SELECT batch.number INTO fold_end
      FROM json_array_elements(document.batches::json) WITH ORDINALITY AS batch (value, number)
        WHERE (batch.value -> 'id')::text = to_json(given.fold_through)::text;
    END IF;
    IF fold_end IS NOT NULL THEN
      document.value := given.fold_value;
      SELECT COALESCE(json_agg(batch.value ORDER BY batch.number), '[]') INTO document.batches
        FROM json_array_elements(document.batches::json) WITH ORDINALITY AS batch (value, number)
        WHERE batch.number > fold_end;
    END IF;
    IF given.entries IS NOT NULL THEN
      -- Works on bytes, because removing a character from the end of a string counts all characters.
      bytes := convert_to(document.batches, 'UTF8');
      document.batches := convert_from(substr(bytes, 1, length(bytes) - 1), 'UTF8')
        || CASE document.batches WHEN '[]' THEN '' ELSE ',' END
        || head || '"at":' || now || ',"entries":' || to_json(given.entries) || '}]';
    END IF;
    IF given.entries IS NOT NULL OR NOT live THEN
      document.version := {next_version_v1}(document.version);
    END IF;
    EXIT WHEN {write_document_v1}(document, stored);
  END LOOP;
  RETURN document;
END $$;

CREATE FUNCTION {append_document_v1}(args json) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  of_session text := args ->> 'session_id';
  document {document};
  refusal json;
BEGIN
  PERFORM {lock_documents_v1}(of_session, false);
  refusal := {state_refusal_v1}(of_session, args -> 'require_session');
  IF refusal IS NOT NULL THEN RETURN refusal; END IF;
  document := {append_to_document_v1}(args, NULL);
  RETURN CASE WHEN document.key IS NULL THEN 'null' ELSE {shown_document_v1}(document) END;
END $$;

CREATE FUNCTION {access_document_v1}(args json) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  document {document} := {lock_document_v1}(json_populate_record(NULL::{document}, args));
  now bigint := {now_v1}();
BEGIN
  IF NOT {is_document_live_v1}(document, now) THEN RETURN 'null'::json; END IF;
  document.accessed_at := now;
  document.expires_at := now + (args ->> 'ttl_ms')::bigint;
  UPDATE {document} AS stored SET accessed_at = document.accessed_at, expires_at = document.expires_at
    WHERE stored.namespace = document.namespace AND stored.scope = document.scope
      AND stored.session_id = document.session_id AND stored.key = document.key;
  RETURN {shown_document_v1}(document);
END $$;

-- Returns the named documents in order, with null for missing ones. NULL instead of names returns no document.
CREATE FUNCTION {documents_v1}(of_session text, names json) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  now bigint;
  documents json;
BEGIN
  IF names IS NULL THEN RETURN '[]'::json; END IF;
  now := {now_v1}();
  SELECT json_agg((
    SELECT {shown_document_v1}(document) FROM {document} AS document
    WHERE namespace = name.value ->> 'namespace' AND scope = name.value ->> 'scope'
      AND session_id = of_session AND key = name.value ->> 'key' AND {is_document_live_v1}(document, now)
  ) ORDER BY name.number) INTO documents FROM json_array_elements(names) WITH ORDINALITY AS name (value, number);
  RETURN COALESCE(documents, '[]');
END $$;

CREATE FUNCTION {delete_document_v1}(args json) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  place {document} := json_populate_record(NULL::{document}, args);
  stored {document} := {lock_document_v1}(place);
  now bigint := {now_v1}();
BEGIN
  -- A newer document is kept.
  IF stored.key IS NULL THEN RETURN 'false'::json; END IF;
  DELETE FROM {document}
    WHERE namespace = place.namespace AND scope = place.scope AND session_id = place.session_id AND key = place.key;
  RETURN to_json({is_document_live_v1}(stored, now));
END $$;

-- Documents that another process is writing are kept.
CREATE FUNCTION {delete_expired_documents_v1}(args json) RETURNS json LANGUAGE plpgsql SET enable_seqscan = off AS $$
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
END $$;

-- Selects the excess count and the least recently accessed documents in one snapshot, so that concurrent calls select
-- the same ones. A document that another process writes, or has written since, is not replaced by
-- another one.
CREATE FUNCTION {evict_idle_documents_v1}(args json) RETURNS json LANGUAGE plpgsql
SET enable_seqscan = off SET enable_sort = off AS $$
DECLARE
  given record;
  now bigint := {now_v1}();
  gone bigint;
BEGIN
  SELECT * INTO given FROM json_to_record(args) AS a(namespace text, keep bigint, max_documents bigint);
  DELETE FROM {document} WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM {document} WHERE ctid = ANY(ARRAY(
      SELECT ctid FROM {document} AS document
      WHERE namespace = given.namespace AND accessed_at >= 0 AND {is_document_live_v1}(document, now)
      ORDER BY accessed_at LIMIT (
        SELECT count(*) FROM (
          SELECT FROM {document} AS document
          WHERE namespace = given.namespace AND accessed_at >= 0 AND {is_document_live_v1}(document, now)
          ORDER BY accessed_at DESC OFFSET given.keep LIMIT given.max_documents
        ) AS excess
      )
    )) FOR UPDATE SKIP LOCKED
  ));
  GET DIAGNOSTICS gone = ROW_COUNT;
  RETURN to_json(gone);
END $$;
