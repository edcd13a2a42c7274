#!lua flags=allow-oom
-- ARGV: limit.
-- @include documents

return { 1, remove_expired_documents(ARGV[1]) }
