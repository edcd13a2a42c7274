import { query, script, thrifty } from './script.js';

/** A document is a hash that Redis expires; `expiring` and `documents:session` are for those who clean up. */
const DOCUMENTS = /* lua */ `
local document = ARGV[1]
local document_key = key('document', document)

-- Redis lets a key live to the end of its last millisecond.
local function live_document()
  local row = read(document_key)
  if row and (not row.expiresAt or tonumber(row.expiresAt) > now) then return row end
end

local function expire_at(time)
  redis.call('HSET', document_key, 'expiresAt', time)
  redis.call('PEXPIREAT', document_key, time)
  redis.call('ZADD', base .. 'expiring', time, document)
end
`;

export const GET_DOCUMENT = query(
  'get-document',
  [DOCUMENTS],
  /* lua */ `
local row = live_document()
return { 1, row and flat(row) or false }
`,
);

/** ARGV: document, session, value, the version that must be there or '', ttlMs or ''. */
export const SET_DOCUMENT = script(
  'set-document',
  [DOCUMENTS],
  /* lua */ `
local session_id, value, if_version, ttl_ms = ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
if is_erased(session_id) then return refuse('SESSION_NOT_FOUND', 'session_id', session_id) end
local before = live_document()
local version = before and tonumber(before.version) or 0
if if_version and if_version ~= version then return { 1, false } end
redis.call('HSET', document_key, 'value', value, 'version', version + 1)
redis.call('SADD', key('documents', session_id), document)
local expires_at = ttl_ms and now + ttl_ms or false
if expires_at then
  expire_at(expires_at)
else
  redis.call('HDEL', document_key, 'expiresAt')
  redis.call('PERSIST', document_key)
  redis.call('ZREM', base .. 'expiring', document)
end
return { 1, version + 1, expires_at }
`,
);

/** ARGV: document, ttlMs. */
export const EXTEND_DOCUMENT = script(
  'extend-document',
  [DOCUMENTS],
  /* lua */ `
if not live_document() then return { 1, 0 } end
expire_at(now + ARGV[2])
return { 1, 1 }
`,
);

/** ARGV: document, session. */
export const DELETE_DOCUMENT = thrifty(
  'delete-document',
  [DOCUMENTS],
  /* lua */ `
local was_live = live_document() and 1 or 0
redis.call('UNLINK', document_key)
redis.call('SREM', key('documents', ARGV[2]), document)
redis.call('ZREM', base .. 'expiring', document)
return { 1, was_live }
`,
);

/** The documents themselves are gone, or as good as: this takes them out of the indexes. ARGV: limit. */
export const DELETE_EXPIRED_DOCUMENTS = thrifty(
  'delete-expired-documents',
  [],
  /* lua */ `
local documents = redis.call('ZRANGE', base .. 'expiring', '-inf', now, 'BYSCORE', 'LIMIT', 0, ARGV[1])
for _, document in ipairs(documents) do
  local session_id = string.match(document, '^[^\\31]*\\31[^\\31]*\\31([^\\31]*)\\31')
  redis.call('UNLINK', key('document', document))
  redis.call('SREM', key('documents', session_id), document)
  redis.call('ZREM', base .. 'expiring', document)
end
return { 1, #documents }
`,
);
