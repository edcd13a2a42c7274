#!lua
-- StateStore.set. Returns the document without its value.
-- ARGV[1]: the document
-- ARGV[2]: the session
-- ARGV[3]: the value as JSON
-- ARGV[4]: the expected version, or ''
-- ARGV[5]: the time to live in milliseconds, or ''
-- ARGV[6]: the second argument of state_refusal
-- @include common, documents

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
