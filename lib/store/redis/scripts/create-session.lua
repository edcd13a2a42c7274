#!lua
-- AtomicSessionStoreAdapter.create, or createOrAdopt if ARGV[6] is set.
-- ARGV[1]: the id
-- ARGV[2]: the user
-- ARGV[3]: the workspace, or ''
-- ARGV[4]: the surfaces as JSON
-- ARGV[5]: the policy
-- ARGV[6]: recentMs, or ''
-- ARGV[7]: the lifetime as JSON, see is_abandoned
-- ARGV[8..]: the fields and values of the metadata
-- @include common, sessions

local id, policy, recent_ms = ARGV[1], ARGV[5], tonumber(ARGV[6])
local session = {
  id = id, userId = ARGV[2], workspaceId = ARGV[3] ~= '' and ARGV[3] or nil, surfaces = ARGV[4], state = 'created',
  createdAt = now, lastActivityAt = now, version = 1,
}
local surfaces = surfaces_of(session)

if recent_ms then
  local newest = redis.call('ZRANGE', slot_key(session, surfaces[1] or ''), 0, 0, 'REV')[1]
  local recent = newest and read(session_key(newest))
  if recent and tonumber(recent.createdAt) >= now - recent_ms then return { 1, flat(recent), 0, {} } end
end
if redis.call('EXISTS', session_key(id)) == 1 or is_erased(id) then
  return refuse('SESSION_CONFLICT', 'session_id', id)
end
if policy == 'reject' then
  local taken = refuse_taken(session, surfaces, cjson.decode(ARGV[7]))
  if taken then return taken end
end

for i = 8, #ARGV, 2 do session[ARGV[i]] = ARGV[i + 1] end
write(session_key(id), {}, session)
reindex(nil, session)
local moved_from = policy ~= 'share' and take_surfaces(session, surfaces) or {}
return { 1, flat(session), 1, moved_from }
