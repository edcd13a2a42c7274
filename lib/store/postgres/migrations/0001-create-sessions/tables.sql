-- The tables in PostgreSQL. Times are milliseconds. JSON is text, because jsonb rejects NUL and lone surrogates, which chat
-- contains. Text compares by byte.

CREATE TABLE {session} (
  "id" text COLLATE "C" PRIMARY KEY,
  "user_id" text COLLATE "C" NOT NULL,
  "workspace_id" text COLLATE "C",
  "state" text COLLATE "C" NOT NULL,
  "created_at" bigint NOT NULL,
  "last_activity_at" bigint NOT NULL,
  "state_changed_at" bigint,
  "surfaces" text COLLATE "C" NOT NULL,
  "metadata" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL
);

CREATE INDEX {session_user!} ON {session} ("user_id", "last_activity_at");

CREATE INDEX {session_workspace!} ON {session} ("workspace_id", "last_activity_at") WHERE "workspace_id" IS NOT NULL;

CREATE INDEX {session_state!} ON {session} ("state", "last_activity_at");

CREATE INDEX {session_age!} ON {session} ("created_at") WHERE "state" <> 'expired';

CREATE INDEX {session_expired!} ON {session} ("state_changed_at") WHERE "state" = 'expired';

-- The surfaces of sessions, with the session's user. The session's own row contains the order of attachment.
CREATE TABLE {session_surface} (
  "surface_id" text COLLATE "C" NOT NULL,
  "user_id" text COLLATE "C" NOT NULL,
  "session_id" text COLLATE "C" NOT NULL,
  PRIMARY KEY ("surface_id", "user_id", "session_id")
);

CREATE INDEX {session_surface_session!} ON {session_surface} ("session_id");

-- A turn updates the row three times, never in place (HOT), because attention_at is indexed. The fill factor leaves room for
-- the next version of a row.
CREATE TABLE {lane} (
  "session_id" text COLLATE "C" PRIMARY KEY,
  "next_position" bigint NOT NULL,
  "depth" bigint NOT NULL,
  "fence" bigint NOT NULL,
  "running_turn" text COLLATE "C",
  "holder" text COLLATE "C",
  "lease_until" bigint,
  "awaited" text COLLATE "C",
  "attention_at" bigint,
  "offers" bigint NOT NULL,
  "first_attention_at" bigint,
  "mode" text COLLATE "C",
  "epochs" text COLLATE "C"
) WITH (fillfactor = 70);

-- Idle lanes are not in the index, so that a search for work reads only lanes with work.
CREATE INDEX {lane_attention!} ON {lane} ("attention_at") WHERE "attention_at" IS NOT NULL;

CREATE TABLE {turn} (
  "id" text COLLATE "C" PRIMARY KEY,
  "session_id" text COLLATE "C" NOT NULL,
  "position" bigint NOT NULL,
  "orchestrator" text COLLATE "C" NOT NULL,
  "version" text COLLATE "C" NOT NULL,
  "request" text COLLATE "C" NOT NULL,
  "attributes" text COLLATE "C" NOT NULL,
  "idempotency_key" text COLLATE "C",
  "request_hash" text COLLATE "C",
  "status" text COLLATE "C" NOT NULL,
  "failures" bigint NOT NULL,
  "lost" bigint NOT NULL,
  "lost_since_step" bigint NOT NULL,
  "turn_index" bigint,
  "reply" text COLLATE "C",
  "error" text COLLATE "C",
  "report" text COLLATE "C",
  "spent" text COLLATE "C",
  "cancel_mode" text COLLATE "C",
  "keep" text COLLATE "C",
  "superseded_by" text COLLATE "C",
  "wait_signal" text COLLATE "C",
  "wait_step" text COLLATE "C",
  "wait_others" text COLLATE "C",
  "wait_until" bigint,
  "accepted_at" bigint NOT NULL,
  "started_at" bigint,
  "epochs" text COLLATE "C",
  "settled_at" bigint,
  "settled_fence" bigint,
  "due_at" bigint,
  "event_ttl" bigint
) WITH (fillfactor = 80);

CREATE UNIQUE INDEX {turn_position!} ON {turn} ("session_id", "position");

CREATE UNIQUE INDEX {turn_key!} ON {turn} ("session_id", "idempotency_key") WHERE "idempotency_key" IS NOT NULL;

CREATE INDEX {turn_open!} ON {turn} ("session_id", "position") WHERE "settled_at" IS NULL;

CREATE INDEX {turn_settled!} ON {turn} ("settled_at") WHERE "settled_at" IS NOT NULL;

-- When the events of a turn expire.
CREATE INDEX {turn_events!} ON {turn} (("settled_at" + "event_ttl")) WHERE "settled_at" + "event_ttl" IS NOT NULL;

-- A batch of events, by the offset of its last event.
CREATE TABLE {turn_event} (
  "turn_id" text COLLATE "C" NOT NULL,
  "last_offset" bigint NOT NULL,
  "fence" bigint NOT NULL,
  "batch" bigint NOT NULL,
  "events" text COLLATE "C" NOT NULL,
  PRIMARY KEY ("turn_id", "last_offset")
);

CREATE TABLE {step} (
  "turn_id" text COLLATE "C" NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "step_key" text COLLATE "C" NOT NULL,
  "value" text COLLATE "C" NOT NULL,
  PRIMARY KEY ("turn_id", "id")
);

CREATE TABLE {signal} (
  "turn_id" text COLLATE "C" NOT NULL,
  "name" text COLLATE "C" NOT NULL,
  "payload" text COLLATE "C" NOT NULL,
  PRIMARY KEY ("turn_id", "name")
);

CREATE TABLE {checkpoint} (
  "orchestrator" text COLLATE "C" NOT NULL,
  "session_id" text COLLATE "C" NOT NULL,
  "turn_index" bigint NOT NULL,
  "turn_id" text COLLATE "C",
  "parent" bigint,
  "state" text COLLATE "C" NOT NULL,
  "last_route" text COLLATE "C" NOT NULL,
  "signature" text COLLATE "C" NOT NULL,
  "version" text COLLATE "C" NOT NULL,
  "summarized_through" bigint NOT NULL,
  "saved_at" bigint NOT NULL,
  "extras" text COLLATE "C",
  PRIMARY KEY ("orchestrator", "session_id", "turn_index")
);

CREATE INDEX {checkpoint_session!} ON {checkpoint} ("session_id", "orchestrator", "turn_index");

CREATE TABLE {message} (
  "session_id" text COLLATE "C" NOT NULL,
  "position" bigint NOT NULL,
  "id" text COLLATE "C" NOT NULL,
  "turn_id" text COLLATE "C",
  "orchestrator" text COLLATE "C",
  "role" text COLLATE "C" NOT NULL,
  "body" text COLLATE "C" NOT NULL,
  "created_at" bigint NOT NULL,
  PRIMARY KEY ("session_id", "position")
);

CREATE TABLE {document} (
  "namespace" text COLLATE "C" NOT NULL,
  "scope" text COLLATE "C" NOT NULL,
  "session_id" text COLLATE "C" NOT NULL,
  "key" text COLLATE "C" NOT NULL,
  "value" text COLLATE "C" NOT NULL,
  "batches" text COLLATE "C" NOT NULL,
  "version" bigint NOT NULL,
  "created_at" bigint NOT NULL,
  "accessed_at" bigint NOT NULL,
  "expires_at" bigint,
  PRIMARY KEY ("session_id", "namespace", "scope", "key")
);

-- Only for eviction, as its condition states. Without statistics on a namespace, the planner would otherwise use this
-- index to find documents of one session.
CREATE INDEX {document_access!} ON {document} ("namespace", "accessed_at") WHERE "accessed_at" >= 0;

CREATE INDEX {document_expiry!} ON {document} ("expires_at") WHERE "expires_at" IS NOT NULL;

CREATE TABLE {lease} (
  "name" text COLLATE "C" PRIMARY KEY,
  "holder" text COLLATE "C" NOT NULL,
  "fence" bigint NOT NULL,
  "expires_at" bigint NOT NULL
);

CREATE TABLE {tombstone} ("session_id" text COLLATE "C" PRIMARY KEY, "erased_at" bigint NOT NULL);

-- The migration of the tables, and the first one that is compatible with them.
CREATE TABLE {schema} ("version" bigint PRIMARY KEY, "usable_from" bigint NOT NULL);
