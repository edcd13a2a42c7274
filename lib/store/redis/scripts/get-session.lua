#!lua flags=no-writes
-- SessionStoreAdapter.fetchById.
-- ARGV[1]: the session
-- @include sessions

return { 1, redis.call('HGETALL', session_key(ARGV[1])) }
