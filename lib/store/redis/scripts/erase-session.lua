#!lua flags=allow-oom
-- AtomicSessionStoreAdapter.erase.
-- ARGV[1]: the session
-- @include common, session-removal

redis.call('SETNX', key('tombstone', ARGV[1]), now)
return { 1, remove_session(ARGV[1]) and 1 or 0 }
