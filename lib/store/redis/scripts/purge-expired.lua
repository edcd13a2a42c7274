#!lua flags=allow-oom
-- AtomicSessionStoreAdapter.purgeExpired.
-- ARGV[1]: olderThanMs
-- ARGV[2]: the maximum number of sessions
-- @include common, session-removal

local ids = redis.call('ZRANGE', base .. 'expired', '-inf', '(' .. now - ARGV[1], 'BYSCORE', 'LIMIT', 0, ARGV[2])
for _, id in ipairs(ids) do remove_session(id) end
return { 1, ids }
