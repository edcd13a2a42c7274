-- The tables in MySQL and MariaDB. Times are milliseconds, JSON is stored as text. Compared columns are VARBINARY: equal
-- bytes only, without case folding or padding. A name of 256 UTF-16 units has at most 768 bytes, so every key stays below
-- InnoDB's 3072. CREATE TABLE commits, so a migration that was interrupted runs again, over the tables that exist.

-- The migration of the tables, and the first one that is compatible with them.
CREATE TABLE IF NOT EXISTS {schema} (
  version BIGINT NOT NULL PRIMARY KEY,
  usable_from BIGINT NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Partial indexes do not exist here. A generated column that is NULL puts its row at the end of the index, which is never
-- read.
CREATE TABLE IF NOT EXISTS {session} (
  id VARBINARY(200) NOT NULL PRIMARY KEY,
  user_id VARBINARY(768) NOT NULL,
  workspace_id VARBINARY(768),
  state VARBINARY(32) NOT NULL,
  created_at BIGINT NOT NULL,
  last_activity_at BIGINT NOT NULL,
  state_changed_at BIGINT,
  surfaces LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  metadata LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  version BIGINT NOT NULL,
  live_since BIGINT GENERATED ALWAYS AS (IF(state = 'expired', NULL, created_at)) STORED,
  expired_since BIGINT GENERATED ALWAYS AS (IF(state = 'expired', state_changed_at, NULL)) STORED,
  KEY {session_user!} (user_id, last_activity_at DESC, created_at DESC, id),
  KEY {session_state!} (state, last_activity_at DESC, created_at DESC, id),
  KEY {session_workspace!} (workspace_id, last_activity_at DESC, created_at DESC, id),
  KEY {session_age!} (live_since),
  KEY {session_expired!} (expired_since)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The surfaces of sessions, with the session's user. The session's own row contains the order of attachment.
CREATE TABLE IF NOT EXISTS {session_surface} (
  surface_id VARBINARY(768) NOT NULL,
  user_id VARBINARY(768) NOT NULL,
  session_id VARBINARY(200) NOT NULL,
  PRIMARY KEY (surface_id, user_id, session_id),
  KEY {session_surface_session!} (session_id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Locks for concurrent changes of one user's surface. A row contains a number only.
CREATE TABLE IF NOT EXISTS {slot} (
  id INT NOT NULL PRIMARY KEY
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS {lane} (
  session_id VARBINARY(200) NOT NULL PRIMARY KEY,
  next_position BIGINT NOT NULL,
  depth BIGINT NOT NULL,
  fence BIGINT NOT NULL,
  running_turn VARBINARY(200),
  holder VARBINARY(768),
  lease_until BIGINT,
  awaited LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  attention_at BIGINT,
  offers BIGINT NOT NULL,
  first_attention_at BIGINT,
  mode VARBINARY(32),
  epochs LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  KEY {lane_attention!} (attention_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS {turn} (
  id VARBINARY(200) NOT NULL PRIMARY KEY,
  session_id VARBINARY(200) NOT NULL,
  position BIGINT NOT NULL,
  orchestrator VARBINARY(768) NOT NULL,
  version LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  request LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  attributes LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  idempotency_key VARBINARY(768),
  request_hash LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  status VARBINARY(32) NOT NULL,
  failures BIGINT NOT NULL,
  lost BIGINT NOT NULL,
  lost_since_step BIGINT NOT NULL,
  turn_index BIGINT,
  reply LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  error LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  report LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  spent LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  cancel_mode VARBINARY(32),
  keep LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  superseded_by VARBINARY(200),
  wait_signal VARBINARY(768),
  wait_step LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  wait_others LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  wait_until BIGINT,
  accepted_at BIGINT NOT NULL,
  started_at BIGINT,
  epochs LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  settled_at BIGINT,
  settled_fence BIGINT,
  due_at BIGINT,
  event_ttl BIGINT,
  is_open TINYINT GENERATED ALWAYS AS (IF(settled_at IS NULL, 1, NULL)) STORED,
  events_until BIGINT GENERATED ALWAYS AS (settled_at + event_ttl) STORED,
  UNIQUE KEY {turn_position!} (session_id, position),
  UNIQUE KEY {turn_key!} (session_id, idempotency_key),
  KEY {turn_settled!} (settled_at),
  KEY {turn_open!} (is_open, session_id, position),
  KEY {turn_events!} (events_until)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- A batch of events, by the offset of its last event.
CREATE TABLE IF NOT EXISTS {turn_event} (
  turn_id VARBINARY(200) NOT NULL,
  last_offset BIGINT NOT NULL,
  fence BIGINT NOT NULL,
  batch BIGINT NOT NULL,
  events LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  PRIMARY KEY (turn_id, last_offset)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS {step} (
  turn_id VARBINARY(200) NOT NULL,
  id VARBINARY(200) NOT NULL,
  step_key LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  value LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  PRIMARY KEY (turn_id, id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS {signal} (
  turn_id VARBINARY(200) NOT NULL,
  name VARBINARY(768) NOT NULL,
  payload LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  PRIMARY KEY (turn_id, name)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS {checkpoint} (
  orchestrator VARBINARY(768) NOT NULL,
  session_id VARBINARY(200) NOT NULL,
  turn_index BIGINT NOT NULL,
  turn_id VARBINARY(200),
  parent BIGINT,
  state LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  last_route LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  signature LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  version LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  summarized_through BIGINT NOT NULL,
  saved_at BIGINT NOT NULL,
  extras LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  PRIMARY KEY (orchestrator, session_id, turn_index),
  KEY {checkpoint_session!} (session_id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS {message} (
  session_id VARBINARY(200) NOT NULL,
  position BIGINT NOT NULL,
  id VARBINARY(768) NOT NULL,
  turn_id VARBINARY(200),
  orchestrator VARBINARY(768),
  role VARBINARY(32) NOT NULL,
  body LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (session_id, position)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS {document} (
  namespace VARBINARY(768) NOT NULL,
  scope VARBINARY(768) NOT NULL,
  session_id VARBINARY(200) NOT NULL,
  `key` VARBINARY(768) NOT NULL,
  value LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  batches LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  version BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  accessed_at BIGINT NOT NULL,
  expires_at BIGINT,
  PRIMARY KEY (session_id, namespace, scope, `key`),
  KEY {document_access!} (namespace, accessed_at),
  KEY {document_expiry!} (expires_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS {lease} (
  name VARBINARY(768) NOT NULL PRIMARY KEY,
  holder VARBINARY(768) NOT NULL,
  fence BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS {tombstone} (
  session_id VARBINARY(200) NOT NULL PRIMARY KEY,
  erased_at BIGINT NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
