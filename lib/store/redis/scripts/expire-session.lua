#!lua flags=allow-oom
-- @include common, lane, sessions

local session = read(session_key(ARGV[1]))
if not session then return not_found(ARGV[1]) end
-- A repeat as well: a running turn may have been put back into the queue since.
cancel_open_turns(session.id)
return { 1, expire_session(session) }
