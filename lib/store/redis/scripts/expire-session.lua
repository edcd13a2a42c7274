#!lua flags=allow-oom
-- AtomicSessionStoreAdapter.expire.
-- ARGV[1]: the session
-- @include common, lane, sessions

local session = read(session_key(ARGV[1]))
if not session then return not_found(ARGV[1]) end
-- Also on a repeat, because a running turn may have returned to the queue.
cancel_open_turns(session.id)
return { 1, expire_session(session) }
