#!lua flags=no-writes
-- @include sessions

return { 1, redis.call('HGETALL', session_key(ARGV[1])) }
