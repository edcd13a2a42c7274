#!lua
-- SessionStoreAdapter.update. Does not check the version. Afterwards the version therefore no longer proves that a
-- client has the current row, which `edited` records.
-- ARGV[1]: the session
-- ARGV[2]: '1' if the metadata is replaced, else ''
-- ARGV[3..]: fields and values; '' removes a field
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
