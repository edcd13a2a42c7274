/**
 * The tables in MySQL and MariaDB, as the first migration makes them. Times are milliseconds, JSON is text. What is
 * compared is VARBINARY: equal bytes only, no case folding, no padding; a name of 256 UTF-16 units has at most 768 bytes, so
 * that every key stays below InnoDB's 3072. A migration is history: what it made is changed by a later one, never here.
 */

const ID = 'VARBINARY(200)';
const NAME = 'VARBINARY(768)';
const WORD = 'VARBINARY(32)';
const TEXT = 'LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';
const OPTIONS = 'ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';

export const CREATE_TABLES: readonly string[] = [
  // Which migration the tables are at, and since which one they can be used.
  `CREATE TABLE {schema} (version BIGINT NOT NULL PRIMARY KEY, usable_from BIGINT NOT NULL) ${OPTIONS}`,

  // There are no partial indexes: a generated column that is NULL leaves its row at the end of the index that nobody reads.
  `CREATE TABLE {session} (
    id ${ID} NOT NULL PRIMARY KEY,
    user_id ${NAME} NOT NULL,
    workspace_id ${NAME},
    state ${WORD} NOT NULL,
    created_at BIGINT NOT NULL,
    last_activity_at BIGINT NOT NULL,
    state_changed_at BIGINT,
    surfaces ${TEXT} NOT NULL,
    metadata ${TEXT} NOT NULL,
    version BIGINT NOT NULL,
    live_since BIGINT GENERATED ALWAYS AS (IF(state = 'expired', NULL, created_at)) STORED,
    KEY {session_user!} (user_id, last_activity_at DESC, created_at DESC, id),
    KEY {session_state!} (state, last_activity_at DESC, created_at DESC, id),
    KEY {session_age!} (live_since)
  ) ${OPTIONS}`,

  // Which sessions hold a surface; the order of attachment is in the session's own row.
  `CREATE TABLE {session_surface} (
    surface_id ${NAME} NOT NULL,
    session_id ${ID} NOT NULL,
    PRIMARY KEY (surface_id, session_id),
    KEY {session_surface_session!} (session_id)
  ) ${OPTIONS}`,

  // What concurrent changes of one user's surface lock; a row is a number and nothing else.
  `CREATE TABLE {slot} (id INT NOT NULL PRIMARY KEY) ${OPTIONS}`,

  `CREATE TABLE {lane} (
    session_id ${ID} NOT NULL PRIMARY KEY,
    next_position BIGINT NOT NULL,
    depth BIGINT NOT NULL,
    fence BIGINT NOT NULL,
    running_turn ${ID},
    holder ${NAME},
    lease_until BIGINT,
    awaited ${TEXT},
    attention_at BIGINT,
    offers BIGINT NOT NULL,
    first_attention_at BIGINT,
    mode ${WORD},
    epochs ${TEXT},
    KEY {lane_attention!} (attention_at)
  ) ${OPTIONS}`,

  `CREATE TABLE {turn} (
    id ${ID} NOT NULL PRIMARY KEY,
    session_id ${ID} NOT NULL,
    position BIGINT NOT NULL,
    orchestrator ${NAME} NOT NULL,
    version ${TEXT} NOT NULL,
    request ${TEXT} NOT NULL,
    attributes ${TEXT} NOT NULL,
    idempotency_key ${NAME},
    request_hash ${TEXT},
    status ${WORD} NOT NULL,
    failures BIGINT NOT NULL,
    lost BIGINT NOT NULL,
    turn_index BIGINT,
    reply ${TEXT},
    error ${TEXT},
    report ${TEXT},
    spent ${TEXT},
    cancel_mode ${WORD},
    superseded_by ${ID},
    wait_signal ${NAME},
    wait_step ${TEXT},
    wait_until BIGINT,
    accepted_at BIGINT NOT NULL,
    started_at BIGINT,
    epochs ${TEXT},
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
  ) ${OPTIONS}`,

  // A batch of events, by the offset of the last one of them.
  `CREATE TABLE {turn_event} (
    turn_id ${ID} NOT NULL,
    last_offset BIGINT NOT NULL,
    fence BIGINT NOT NULL,
    batch BIGINT NOT NULL,
    events ${TEXT} NOT NULL,
    PRIMARY KEY (turn_id, last_offset)
  ) ${OPTIONS}`,

  `CREATE TABLE {step} (
    turn_id ${ID} NOT NULL,
    id ${ID} NOT NULL,
    step_key ${TEXT} NOT NULL,
    value ${TEXT} NOT NULL,
    PRIMARY KEY (turn_id, id)
  ) ${OPTIONS}`,

  `CREATE TABLE {signal} (
    turn_id ${ID} NOT NULL,
    name ${NAME} NOT NULL,
    payload ${TEXT} NOT NULL,
    PRIMARY KEY (turn_id, name)
  ) ${OPTIONS}`,

  `CREATE TABLE {checkpoint} (
    orchestrator ${NAME} NOT NULL,
    session_id ${ID} NOT NULL,
    turn_index BIGINT NOT NULL,
    turn_id ${ID},
    parent BIGINT,
    state ${TEXT} NOT NULL,
    last_route ${TEXT} NOT NULL,
    signature ${TEXT} NOT NULL,
    version ${TEXT} NOT NULL,
    summarized_through BIGINT NOT NULL,
    saved_at BIGINT NOT NULL,
    extras ${TEXT},
    PRIMARY KEY (orchestrator, session_id, turn_index),
    KEY {checkpoint_session!} (session_id)
  ) ${OPTIONS}`,

  `CREATE TABLE {message} (
    session_id ${ID} NOT NULL,
    position BIGINT NOT NULL,
    id ${NAME} NOT NULL,
    turn_id ${ID},
    orchestrator ${NAME},
    role ${WORD} NOT NULL,
    body ${TEXT} NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (session_id, position)
  ) ${OPTIONS}`,

  `CREATE TABLE {document} (
    namespace ${NAME} NOT NULL,
    scope ${NAME} NOT NULL,
    session_id ${ID} NOT NULL,
    \`key\` ${NAME} NOT NULL,
    value ${TEXT} NOT NULL,
    batches ${TEXT} NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    accessed_at BIGINT NOT NULL,
    expires_at BIGINT,
    PRIMARY KEY (session_id, namespace, scope, \`key\`),
    KEY {document_access!} (namespace, accessed_at),
    KEY {document_expiry!} (expires_at)
  ) ${OPTIONS}`,

  `CREATE TABLE {lease} (
    name ${NAME} NOT NULL PRIMARY KEY,
    holder ${NAME} NOT NULL,
    fence BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
  ) ${OPTIONS}`,

  `CREATE TABLE {tombstone} (session_id ${ID} NOT NULL PRIMARY KEY, erased_at BIGINT NOT NULL) ${OPTIONS}`,
];
