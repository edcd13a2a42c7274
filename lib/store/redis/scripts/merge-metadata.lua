#!lua
-- AtomicSessionStoreAdapter.mergeMetadata.
-- ARGV[1]: the session
-- ARGV[2]: the maximum size of the metadata in bytes
-- ARGV[3]: the session that must have the id, see is_other_session, or ''
-- ARGV[4..]: fields and values; '' removes a field
-- @include common, sessions

local session, max_bytes = read(session_key(ARGV[1])), tonumber(ARGV[2])
if not session or is_other_session(ARGV[3], session.createdAt, session.userId) then return not_found(ARGV[1]) end
local changes
for i = 4, #ARGV, 2 do
  local field, value = ARGV[i], ARGV[i + 1] ~= '' and ARGV[i + 1] or nil
  if session[field] ~= value then
    changes = changes or {}
    changes[field] = value or false
  end
end
-- The size as plain JSON: braces, and a colon and a comma per entry.
local bytes = 1
local function count(field, value)
  if string.sub(field, 1, #META) == META then bytes = bytes + #field - #META + #value + 2 end
end
for field, value in pairs(session) do
  if not changes or changes[field] == nil then count(field, value) end
end
for field, value in pairs(changes or {}) do
  if value then count(field, value) end
end
if bytes > max_bytes then
  local subject = 'The metadata of session ' .. session.id
  return refuse('TOO_LARGE', 'subject', subject, 'bytes', math.max(bytes, 2), 'max_bytes', max_bytes)
end
return { 1, change_session(session, changes) }
