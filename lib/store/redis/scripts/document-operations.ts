import { DOCUMENTS } from './documents.js';
import { query, script, thrifty } from './script.js';

export const GET_DOCUMENT = query(
  'get-document',
  [DOCUMENTS],
  /* lua */ `
return { 1, live_documents({ ARGV[1] })[1] }
`,
);

/** ARGV: document, ttlMs or ''. */
export const ACCESS_DOCUMENT = thrifty(
  'access-document',
  [DOCUMENTS],
  /* lua */ `
local row = live_document(ARGV[1])
return { 1, row and flat(write_document(ARGV[1], row, {}, tonumber(ARGV[2]))) or false }
`,
);

/** ARGV: document, session, value, the version that must be there or '', ttlMs or '', 1 when the session must be there or ''. The answer is without the value. */
export const SET_DOCUMENT = script(
  'set-document',
  [DOCUMENTS],
  /* lua */ `
local document, session_id, value, if_version, ttl_ms = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local refusal = state_refusal(session_id, ARGV[6])
if refusal then return refusal end
local before = live_document(document) or { version = 0, createdAt = now }
if if_version and if_version ~= tonumber(before.version) then return { 1, false } end
local version = next_version(tonumber(before.version))
local changes = { value = value, valueVersion = version, version = version, createdAt = before.createdAt }
local row = write_document(document, new_document(document), changes, ttl_ms)
row.value = nil
return { 1, flat(row) }
`,
);

/** ARGV: session, 1 when it must be there or '', then what append_document takes. */
export const APPEND_DOCUMENT = script(
  'append-document',
  [DOCUMENTS],
  /* lua */ `
local refusal = state_refusal(ARGV[1], ARGV[2])
if refusal then return refusal end
local row = append_document(3)
return { 1, row and flat(row) or false }
`,
);

export const DELETE_DOCUMENT = thrifty(
  'delete-document',
  [DOCUMENTS],
  /* lua */ `
local was_live = live_document(ARGV[1]) and 1 or 0
remove_document(ARGV[1])
return { 1, was_live }
`,
);

/** ARGV: session, what the documents' names begin with, the one to begin after or '', limit. Gives each with its name. */
export const LIST_DOCUMENTS = query(
  'list-documents',
  [DOCUMENTS],
  /* lua */ `
local at, after, limit = key('documents', ARGV[1]), ARGV[3], tonumber(ARGV[4])
local from, to = bounds_of(ARGV[2])
if after ~= '' then from = '(' .. after end
local found = {}
while #found < limit do
  local documents = redis.call('ZRANGE', at, from, to, 'BYLEX', 'LIMIT', 0, limit)
  for _, document in ipairs(documents) do
    local row = #found < limit and live_document(document)
    if row then found[#found + 1] = { document, flat(row) } end
  end
  if #documents < limit then break end
  from = '(' .. documents[limit]
end
return { 1, found }
`,
);

/** ARGV: session, what the documents' names begin with. */
export const COUNT_DOCUMENTS = query(
  'count-documents',
  [DOCUMENTS],
  /* lua */ `
local count = 0
for _, document in ipairs(documents_of(ARGV[1], ARGV[2])) do
  if is_live(document) then count = count + 1 end
end
return { 1, count }
`,
);

/** Goes from namespace to namespace, whatever stands in each. */
export const LIST_NAMESPACES = query(
  'list-namespaces',
  [DOCUMENTS],
  /* lua */ `
local at, from, found = key('documents', ARGV[1]), '-', {}
while true do
  local document = redis.call('ZRANGE', at, from, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
  if not document then return { 1, found } end
  local namespace = owners_of(document)
  found[#found + 1] = namespace
  local _, beyond = bounds_of(namespace .. SEPARATOR)
  from = beyond
end
`,
);

/** ARGV: limit. */
export const DELETE_EXPIRED_DOCUMENTS = thrifty(
  'delete-expired-documents',
  [DOCUMENTS],
  /* lua */ `
return { 1, remove_expired_documents(ARGV[1]) }
`,
);

/** ARGV: namespace, how many stay, limit. */
export const EVICT_IDLE_DOCUMENTS = thrifty(
  'evict-idle-documents',
  [DOCUMENTS],
  /* lua */ `
-- Of expired ones in a run, so that nobody waits for long.
local MOST_EXPIRED = 10000

local at, keep, limit = key('idle', ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if redis.call('ZCARD', at) <= keep then return { 1, 0 } end
remove_expired_documents(MOST_EXPIRED)
-- Those that are left may all be of this namespace: rather too few are evicted than one too many, unless all are to go.
local expired = keep > 0 and redis.call('ZCOUNT', base .. 'expiring', '-inf', now) or 0
local count = math.min(redis.call('ZCARD', at) - expired - keep, limit)
if count <= 0 then return { 1, 0 } end
local documents = redis.call('ZRANGE', at, 0, count - 1)
for _, document in ipairs(documents) do remove_document(document) end
return { 1, #documents }
`,
);
