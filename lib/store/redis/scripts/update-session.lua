#!lua
-- ARGV: id, whether metadata is replaced, then fields and values; '' takes a field away. Looks at nothing else: also
-- not at the version, so that from now on it does not tell whether somebody knows the row.
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
