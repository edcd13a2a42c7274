#!lua flags=no-writes
-- ConversationLog.sessions.
-- ARGV[1]: the lower bound of the ids, as ZRANGE BYLEX accepts it
-- ARGV[2]: the maximum number of ids
-- @include common

return { 1, redis.call('ZRANGE', base .. 'conversed', ARGV[1], '+', 'BYLEX', 'LIMIT', 0, ARGV[2]) }
