#!lua
-- ARGV: id, whether metadata is replaced, then fields and values; '' removes a field. It does not check the version,
-- so afterwards the version does not show whether a client knows the row.
-- @include common, sessions

local session = read(session_key(ARGV[1]))
if not session then return not_found(ARGV[1]) end
local before, changes = {}, { edited = '1' }
for field, value in pairs(session) do
  before[field] = value
  if ARGV[2] == '1' and string.sub(field, 1, #META) == META then changes[field] = false end
end
for i = 3, #ARGV, 2 do changes[ARGV[i]] = ARGV[i + 1] ~= '' and ARGV[i + 1] end
write(session_key(session.id), session, changes)
reindex(before, session)
return { 1, flat(session) }
