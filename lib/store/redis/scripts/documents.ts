/**
 * State documents, as their own port and turns read and write them.
 *
 * A document is a hash that Redis expires: beside its value, what was appended since, each batch under the version that it
 * made, from `valueVersion` + 1 to `version`. Neither the value nor a batch's entries are looked into. `documents:session`,
 * `idle:namespace` (by the last access) and `expiring` say which there are; Redis does not take out what it has expired.
 */
export const DOCUMENTS = /* lua */ `
-- How many arguments append_document takes from ARGV.
local APPEND_ARGUMENTS = 9

-- Its namespace and its session.
local function owners_of(document)
  return string.match(document, '^([^\\31]*)\\31[^\\31]*\\31([^\\31]*)\\31')
end

-- nil when there is none; Redis lets a key live to the end of its last millisecond.
local function live_document(document)
  local row = read(key('document', document))
  if row and (not row.expiresAt or tonumber(row.expiresAt) > now) then return row end
end

-- Each as fields and values, or false.
local function live_documents(documents)
  local found = {}
  for i, document in ipairs(documents) do
    local row = live_document(document)
    found[i] = row and flat(row) or false
  end
  return found
end

-- Makes place for a document: gives the empty row.
local function new_document(document)
  local _, session_id = owners_of(document)
  redis.call('UNLINK', key('document', document))
  redis.call('SADD', key('documents', session_id), document)
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

local function has_batch(row, id, first, last)
  for version = first, last do
    -- The time, the id and the entries are a line each.
    if string.match(row[tostring(version)], '\\n([^\\n]*)\\n') == id then return true end
  end
  return false
end

-- ARGV, from the first on: document, id and entries as JSON, initial value, version, ttlMs, and of a fold the version it is
-- from, how many batches, and the value; '' for what is not given, and for no entries. Gives what is stored then, or nil.
local function append_document(first)
  local document, id, entries, initial, if_version, ttl_ms, fold_from, fold_batches, fold_value =
    unpack(ARGV, first, first + APPEND_ARGUMENTS - 1)
  local row = live_document(document)
  if not row and initial == '' then return nil end
  local version, value_version = row and tonumber(row.version) or 0, row and tonumber(row.valueVersion) or 0
  if row and has_batch(row, id, value_version + 1, version) then return row end
  if if_version ~= '' and tonumber(if_version) ~= version then return row end

  local changes, folded = {}, tonumber(fold_batches) or 0
  if not row then
    row = new_document(document)
    changes.value, changes.createdAt, changes.version = initial, now, 1
    changes.valueVersion = entries == '' and 1 or 0
  elseif tonumber(fold_from) == value_version and folded >= 1 and folded <= version - value_version then
    changes.value, changes.valueVersion = fold_value, value_version + folded
    for number = value_version + 1, value_version + folded do changes[tostring(number)] = false end
  end
  if entries ~= '' then
    changes.version = version + 1
    changes[tostring(version + 1)] = now .. '\\n' .. id .. '\\n' .. entries
  end
  return write_document(document, row, changes, tonumber(ttl_ms))
end

local function remove_document(document)
  local namespace, session_id = owners_of(document)
  redis.call('UNLINK', key('document', document))
  redis.call('SREM', key('documents', session_id), document)
  redis.call('ZREM', key('idle', namespace), document)
  redis.call('ZREM', base .. 'expiring', document)
end

-- Says how many it took out of the indexes: the documents themselves are gone, or as good as.
local function remove_expired_documents(limit)
  local documents = redis.call('ZRANGE', base .. 'expiring', '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)
  for _, document in ipairs(documents) do remove_document(document) end
  return #documents
end
`;
