#!lua flags=allow-oom
-- AtomicSessionStoreAdapter.revoke.
-- ARGV[1]: the session
-- ARGV[2]: the session that must have the id, see is_other_session, or ''
-- @include common, lane, sessions

local session = read(session_key(ARGV[1]))
if not session or is_other_session(ARGV[2], session.createdAt, session.userId) then return not_found(ARGV[1]) end
cancel_open_turns(session.id)
-- Only the running turn remains.
local running = redis.call('HGET', lane_key(session.id), 'head')
if running then mark_turn(read_turn(running), 'cancel') end
return { 1, expire_session(session) }
