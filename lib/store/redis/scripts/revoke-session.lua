#!lua flags=allow-oom
-- AtomicSessionStoreAdapter.revoke.
-- ARGV[1]: the session
-- @include common, lane, sessions

local session = read(session_key(ARGV[1]))
if not session then return not_found(ARGV[1]) end
cancel_open_turns(session.id)
-- Only the running turn remains.
local running = redis.call('HGET', lane_key(session.id), 'head')
if running then mark_turn(read_turn(running), 'cancel') end
return { 1, expire_session(session) }
