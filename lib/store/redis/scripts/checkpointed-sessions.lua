#!lua flags=no-writes
-- ARGV: orchestrator, the bounds of the ids as ZRANGE BYLEX takes them, limit.
-- @include common

return { 1, redis.call('ZRANGE', key('checkpointed', ARGV[1]), ARGV[2], ARGV[3], 'BYLEX', 'LIMIT', 0, ARGV[4]) }
