#!lua
-- AtomicSessionStoreAdapter.attachSurface.
-- ARGV[1]: the session
-- ARGV[2]: the surface
-- ARGV[3]: the policy
-- ARGV[4]: the maximum number of surfaces
-- ARGV[5]: 'reject', or '' to detach the oldest surface at the limit
-- ARGV[6]: the lifetime as JSON, see is_abandoned
-- ARGV[7]: the session that must have the id, see is_other_session, or ''
-- @include common, sessions

local session, surface_id, policy, max_surfaces = read(session_key(ARGV[1])), ARGV[2], ARGV[3], tonumber(ARGV[4])
local on_limit, lifetime = ARGV[5], cjson.decode(ARGV[6])
if not session or is_other_session(ARGV[7], session.createdAt, session.userId) then return not_found(ARGV[1]) end
if session.state == 'expired' or is_overdue(session.createdAt, lifetime.max_ms) then
  return session_over(session.id, 'attachSurface')
end
if holds(session, surface_id) then return { 1, change_session(session), {}, {} } end
local surfaces = surfaces_of(session)
if #surfaces >= max_surfaces and on_limit == 'reject' then
  return refuse('SURFACE_LIMIT', 'session_id', session.id, 'limit', max_surfaces)
end
if policy == 'reject' then
  local taken = refuse_taken(session, { surface_id }, lifetime)
  if taken then return taken end
end
local detached = {}
while #surfaces >= max_surfaces do detached[#detached + 1] = table.remove(surfaces, 1) end
local moved_from = policy ~= 'share' and take_surfaces(session, { surface_id }) or {}
surfaces[#surfaces + 1] = surface_id
return { 1, change_session(session, { surfaces = encode_surfaces(surfaces) }), moved_from, detached }
