#!lua flags=no-writes
-- CheckpointStore.orchestrators.
-- ARGV[1]: the session
-- @include common

return { 1, redis.call('SMEMBERS', key('orchestrators', ARGV[1])) }
