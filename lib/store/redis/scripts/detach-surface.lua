#!lua
-- AtomicSessionStoreAdapter.detachSurface.
-- ARGV[1]: the session
-- ARGV[2]: the surface
-- @include common, sessions

local session = read(session_key(ARGV[1]))
if not session then return not_found(ARGV[1]) end
return { 1, detach(session, ARGV[2]) }
