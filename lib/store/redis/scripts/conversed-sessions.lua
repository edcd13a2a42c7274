#!lua flags=no-writes
-- ARGV: the bound of the ids as ZRANGE BYLEX takes it, limit.
-- @include common

return { 1, redis.call('ZRANGE', base .. 'conversed', ARGV[1], '+', 'BYLEX', 'LIMIT', 0, ARGV[2]) }
