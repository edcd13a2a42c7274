-- State documents, for their port and for turns.
--
-- A document is a hash that Redis expires. It contains its value and the batches appended since, each under the version
-- that it created, from `valueVersion` + 1 to `version`. Values and entries are not parsed. The indexes
-- `documents:session` (by name), `idle:namespace` (by last access) and `expiring` contain the documents. Redis does not
-- remove expired documents from them.
-- @include common

-- The number of arguments of append_document in ARGV.
local APPEND_ARGUMENTS = 9

-- Returns the namespace and the session of a document.
local function owners_of(document)
  return string.match(document, '^([^\31]*)\31[^\31]*\31([^\31]*)\31')
end

-- Returns the refusal of a write, or nil. require_session: '' if the session need not exist, 1 if it must exist and not
-- be expired, or the session that must have the id, see is_other_session.
local function state_refusal(session_id, require_session)
  if is_erased(session_id) then return refuse('SESSION_NOT_FOUND', 'session_id', session_id) end
  if require_session == '' then return nil end
  local session = redis.call('HMGET', key('session', session_id), 'state', 'createdAt', 'userId')
  local state = session[1]
  if not state or is_other_session(require_session, session[2], session[3]) then
    return refuse('SESSION_NOT_FOUND', 'session_id', session_id)
  end
  if state ~= 'expired' then return nil end
  return refuse('SESSION_STATE', 'session_id', session_id, 'state', 'expired', 'attempted', 'write state')
end

-- Returns nil if the document does not exist. Redis keeps a key to the end of its last millisecond.
local function live_document(document)
  local row = read(key('document', document))
  if row and (not row.expiresAt or tonumber(row.expiresAt) > now) then return row end
end

-- Works like live_document, without reading the whole document.
local function is_live(document)
  local row = redis.call('HMGET', key('document', document), 'version', 'expiresAt')
  return row[1] and (not row[2] or tonumber(row[2]) > now)
end

-- Returns each document as fields and values, or false if it does not exist.
local function live_documents(documents)
  local found = {}
  for i, document in ipairs(documents) do
    local row = live_document(document)
    found[i] = row and flat(row) or false
  end
  return found
end

-- Creates a document, and deletes the expired one with the same name. Returns its empty row.
local function new_document(document)
  local _, session_id = owners_of(document)
  redis.call('UNLINK', key('document', document))
  redis.call('ZADD', key('documents', session_id), 0, document)
  return {}
end

-- Changes a document, which is an access: it expires ttl_ms from now, or never when that is nil.
local function write_document(document, row, changes, ttl_ms)
  local at, expires_at = key('document', document), ttl_ms and now + ttl_ms
  changes.accessedAt = now
  changes.expiresAt = expires_at or false
  write(at, row, changes)
  redis.call('ZADD', key('idle', (owners_of(document))), now, document)
  if expires_at then
    redis.call('PEXPIREAT', at, expires_at)
    redis.call('ZADD', base .. 'expiring', expires_at, document)
  else
    redis.call('PERSIST', at)
    redis.call('ZREM', base .. 'expiring', document)
  end
  return row
end

-- Returns the next version as a string. After 0 it is the clock in microseconds, so that a recreated document never
-- reuses a version.
local function next_version(before)
  return whole(before > 0 and before + 1 or clock[1] * 1000000 + clock[2])
end

-- Returns the version that the batch with this id created, or nil.
local function find_batch(row, id, first, last)
  for version = first, last do
    -- The time, the id and the entries are a line each.
    if string.match(row[whole(version)], '\n([^\n]*)\n') == id then return version end
  end
end

-- StateStore.append. Returns the stored document, or nil. '' means absent.
-- ARGV[first]: the document
-- ARGV[first + 1]: the id of the batch as JSON
-- ARGV[first + 2]: the entries as JSON
-- ARGV[first + 3]: the value of a new document as JSON
-- ARGV[first + 4]: the expected version
-- ARGV[first + 5]: the time to live in milliseconds
-- ARGV[first + 6]: 1 to keep the expiry of an existing document
-- ARGV[first + 7]: the id of the last batch to fold as JSON
-- ARGV[first + 8]: the value after the fold as JSON
local function append_document(first)
  local document, id, entries, initial, if_version, ttl_ms, keeps_expiry, fold_through, fold_value =
    unpack(ARGV, first, first + APPEND_ARGUMENTS - 1)
  local row = live_document(document)
  local expires_in = tonumber(ttl_ms)
  if row and keeps_expiry ~= '' then expires_in = row.expiresAt and tonumber(row.expiresAt) - now end
  if not row and initial == '' then return nil end
  local version, value_version = row and tonumber(row.version) or 0, row and tonumber(row.valueVersion) or 0
  if row and find_batch(row, id, value_version + 1, version) then return row end
  if if_version ~= '' and tonumber(if_version) ~= version then return row end

  local changes, folded = {}, row and fold_through ~= '' and find_batch(row, fold_through, value_version + 1, version)
  if not row then
    row = new_document(document)
    changes.value, changes.createdAt, changes.version = initial, now, next_version(0)
    changes.valueVersion = entries == '' and changes.version or whole(changes.version - 1)
  elseif folded then
    changes.value, changes.valueVersion = fold_value, whole(folded)
    for number = value_version + 1, folded do changes[whole(number)] = false end
  end
  if entries ~= '' then
    changes.version = changes.version or next_version(version)
    changes[changes.version] = now .. '\n' .. id .. '\n' .. entries
  end
  return write_document(document, row, changes, expires_in)
end

local function remove_document(document)
  local namespace, session_id = owners_of(document)
  redis.call('UNLINK', key('document', document))
  redis.call('ZREM', key('documents', session_id), document)
  redis.call('ZREM', key('idle', namespace), document)
  redis.call('ZREM', base .. 'expiring', document)
end

-- Returns the BYLEX bounds for names with a prefix. UTF-8 never contains the byte 255.
local function bounds_of(prefix)
  return '[' .. prefix, '(' .. prefix .. '\255'
end

-- Returns the documents of a session whose names have a prefix.
local function documents_of(session_id, prefix)
  local from, to = bounds_of(prefix)
  return redis.call('ZRANGE', key('documents', session_id), from, to, 'BYLEX')
end

-- Removes the documents of a namespace from a session. Returns the number of live ones.
local function clear_documents(session_id, namespace)
  local documents, live = documents_of(session_id, namespace .. SEPARATOR), 0
  for _, document in ipairs(documents) do
    if is_live(document) then live = live + 1 end
    redis.call('UNLINK', key('document', document))
  end
  call_with('ZREM', key('documents', session_id), documents)
  call_with('ZREM', key('idle', namespace), documents)
  call_with('ZREM', base .. 'expiring', documents)
  return live
end

-- Removes expired documents from the indexes, and from Redis unless it has already removed them. Returns their number.
local function remove_expired_documents(limit)
  local documents = redis.call('ZRANGE', base .. 'expiring', '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)
  for _, document in ipairs(documents) do remove_document(document) end
  return #documents
end
