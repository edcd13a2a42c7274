#!lua
-- SessionStoreAdapter.insert.
-- ARGV[1]: the id
-- ARGV[2..]: the fields and values of the whole row
-- @include common, sessions

local id = ARGV[1]
if redis.call('EXISTS', session_key(id)) == 1 or is_erased(id) then
  return refuse('SESSION_CONFLICT', 'session_id', id)
end
local session = {}
for i = 2, #ARGV, 2 do session[ARGV[i]] = ARGV[i + 1] end
write(session_key(id), {}, session)
reindex(nil, session)
return { 1 }
