#!lua flags=allow-oom
-- AtomicSessionStoreAdapter.suspendStale.
-- ARGV[1]: idleMs
-- ARGV[2]: the maximum number of sessions
-- @include common, sessions, idle-sessions

local suspended = {}
for i, member in ipairs(idle_members('active', now - ARGV[1], 0, ARGV[2])) do
  local session = read(session_key(id_of(member)))
  suspended[i] = change_session(session, { state = 'suspended', stateChangedAt = now })[1]
end
return { 1, suspended }
