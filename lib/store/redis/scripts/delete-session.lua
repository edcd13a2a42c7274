#!lua flags=allow-oom
-- AtomicSessionStoreAdapter.delete.
-- ARGV[1]: the session
-- @include session-removal

return { 1, remove_session(ARGV[1]) and 1 or 0 }
