#!lua
-- AtomicSessionStoreAdapter.touch.
-- ARGV[1]: the session
-- ARGV[2]: the TTL in milliseconds, or ''
-- ARGV[3]: the maximum age in milliseconds, or ''
-- ARGV[4]: the session that must have the id, see is_other_session, or ''
-- @include common, sessions

local session = read(session_key(ARGV[1]))
if not session or is_other_session(ARGV[4], session.createdAt, session.userId) then return not_found(ARGV[1]) end
if session.state == 'expired' or is_overdue(session.createdAt, tonumber(ARGV[3])) then
  return session_over(session.id, 'touch')
end
return { 1, touch_session(session, tonumber(ARGV[2])) }
