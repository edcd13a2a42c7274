#!lua flags=allow-oom
-- StateStore.deleteExpired.
-- ARGV[1]: the maximum number of documents
-- @include documents

return { 1, remove_expired_documents(ARGV[1]) }
