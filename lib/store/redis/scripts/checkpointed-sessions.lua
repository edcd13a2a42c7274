#!lua flags=no-writes
-- CheckpointStore.list.
-- ARGV[1]: the orchestrator
-- ARGV[2]: the lower bound of the ids, as ZRANGE BYLEX accepts it
-- ARGV[3]: the upper bound
-- ARGV[4]: the maximum number of ids
-- @include common

return { 1, redis.call('ZRANGE', key('checkpointed', ARGV[1]), ARGV[2], ARGV[3], 'BYLEX', 'LIMIT', 0, ARGV[4]) }
