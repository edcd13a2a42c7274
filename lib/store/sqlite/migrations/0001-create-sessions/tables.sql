-- The tables of the SQLite store. Times are milliseconds, JSON is stored as text.

CREATE TABLE {session} (
  "id" text PRIMARY KEY NOT NULL,
  "user_id" text NOT NULL,
  "workspace_id" text,
  "state" text NOT NULL,
  "created_at" integer NOT NULL,
  "last_activity_at" integer NOT NULL,
  "state_changed_at" integer,
  "surfaces" text NOT NULL,
  "metadata" text NOT NULL,
  "version" integer NOT NULL
);

CREATE INDEX {session_user!} ON {session} ("user_id", "last_activity_at");

CREATE INDEX {session_workspace!} ON {session} ("workspace_id", "last_activity_at") WHERE "workspace_id" IS NOT NULL;

CREATE INDEX {session_state!} ON {session} ("state", "last_activity_at");

CREATE INDEX {session_age!} ON {session} ("created_at") WHERE "state" <> 'expired';

-- Contains the state, because SQLite would otherwise prefer the index on state.
CREATE INDEX {session_expired!} ON {session} ("state", "state_changed_at") WHERE "state" = 'expired';

-- The surfaces of sessions, with the session's user. The session's own row contains the order of attachment.
CREATE TABLE {session_surface} (
  "surface_id" text NOT NULL,
  "user_id" text NOT NULL,
  "session_id" text NOT NULL,
  PRIMARY KEY ("surface_id", "user_id", "session_id")
) WITHOUT ROWID;

CREATE TABLE {lane} (
  "session_id" text PRIMARY KEY NOT NULL,
  "next_position" integer NOT NULL,
  "depth" integer NOT NULL,
  "fence" integer NOT NULL,
  "running_turn" text,
  "holder" text,
  "lease_until" integer,
  "awaited" text,
  "attention_at" integer,
  "offers" integer NOT NULL,
  "first_attention_at" integer,
  "mode" text,
  "epochs" text
);

-- Idle lanes are not in the index, so that a search for work reads only lanes with work.
CREATE INDEX {lane_attention!} ON {lane} ("attention_at") WHERE "attention_at" IS NOT NULL;

CREATE TABLE {turn} (
  "id" text PRIMARY KEY NOT NULL,
  "session_id" text NOT NULL,
  "position" integer NOT NULL,
  "orchestrator" text NOT NULL,
  "version" text NOT NULL,
  "request" text NOT NULL,
  "attributes" text NOT NULL,
  "idempotency_key" text,
  "request_hash" text,
  "status" text NOT NULL,
  "failures" integer NOT NULL,
  "lost" integer NOT NULL,
  "lost_since_step" integer NOT NULL,
  "turn_index" integer,
  "reply" text,
  "error" text,
  "report" text,
  "spent" text,
  "cancel_mode" text,
  "keep" text,
  "superseded_by" text,
  "wait_signal" text,
  "wait_step" text,
  "wait_others" text,
  "wait_until" integer,
  "accepted_at" integer NOT NULL,
  "started_at" integer,
  "epochs" text,
  "settled_at" integer,
  "settled_fence" integer,
  "due_at" integer,
  "event_ttl" integer
);

CREATE UNIQUE INDEX {turn_position!} ON {turn} ("session_id", "position");

CREATE UNIQUE INDEX {turn_key!} ON {turn} ("session_id", "idempotency_key") WHERE "idempotency_key" IS NOT NULL;

CREATE INDEX {turn_open!} ON {turn} ("session_id", "position") WHERE "settled_at" IS NULL;

CREATE INDEX {turn_settled!} ON {turn} ("settled_at") WHERE "settled_at" IS NOT NULL;

-- When the events of a turn expire.
CREATE INDEX {turn_events!} ON {turn} ("settled_at" + "event_ttl") WHERE "event_ttl" IS NOT NULL;

-- A batch of events, by the offset of its last event.
CREATE TABLE {turn_event} (
  "turn_id" text NOT NULL,
  "last_offset" integer NOT NULL,
  "fence" integer NOT NULL,
  "batch" integer NOT NULL,
  "events" text NOT NULL,
  PRIMARY KEY ("turn_id", "last_offset")
);

CREATE TABLE {step} (
  "turn_id" text NOT NULL,
  "id" text NOT NULL,
  "step_key" text NOT NULL,
  "value" text NOT NULL,
  PRIMARY KEY ("turn_id", "id")
);

CREATE TABLE {signal} (
  "turn_id" text NOT NULL,
  "name" text NOT NULL,
  "payload" text NOT NULL,
  PRIMARY KEY ("turn_id", "name")
);

CREATE TABLE {checkpoint} (
  "orchestrator" text NOT NULL,
  "session_id" text NOT NULL,
  "turn_index" integer NOT NULL,
  "turn_id" text,
  "parent" integer,
  "state" text NOT NULL,
  "last_route" text NOT NULL,
  "signature" text NOT NULL,
  "version" text NOT NULL,
  "summarized_through" integer NOT NULL,
  "saved_at" integer NOT NULL,
  "extras" text,
  PRIMARY KEY ("orchestrator", "session_id", "turn_index")
);

CREATE INDEX {checkpoint_session!} ON {checkpoint} ("session_id", "orchestrator");

CREATE TABLE {message} (
  "session_id" text NOT NULL,
  "position" integer NOT NULL,
  "id" text NOT NULL,
  "turn_id" text,
  "orchestrator" text,
  "role" text NOT NULL,
  "body" text NOT NULL,
  "created_at" integer NOT NULL,
  PRIMARY KEY ("session_id", "position")
);

-- Long columns come last, so that a search for idle or expired rows reads only the start of each row.
CREATE TABLE {document} (
  "namespace" text NOT NULL,
  "scope" text NOT NULL,
  "session_id" text NOT NULL,
  "key" text NOT NULL,
  "version" integer NOT NULL,
  "created_at" integer NOT NULL,
  "accessed_at" integer NOT NULL,
  "expires_at" integer,
  "value" text NOT NULL,
  "batches" text NOT NULL,
  PRIMARY KEY ("session_id", "namespace", "scope", "key")
);

CREATE INDEX {document_access!} ON {document} ("namespace", "accessed_at");

CREATE INDEX {document_expiry!} ON {document} ("expires_at") WHERE "expires_at" IS NOT NULL;

CREATE TABLE {lease} (
  "name" text PRIMARY KEY NOT NULL,
  "holder" text NOT NULL,
  "fence" integer NOT NULL,
  "expires_at" integer NOT NULL
);

CREATE TABLE {tombstone} (
  "session_id" text PRIMARY KEY NOT NULL,
  "erased_at" integer NOT NULL
);

-- The migration of the tables, and the first one that is compatible with them.
CREATE TABLE {schema} ("version" integer PRIMARY KEY NOT NULL, "usable_from" integer NOT NULL);
