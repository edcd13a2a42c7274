#!lua flags=no-writes
-- StateStore.get.
-- ARGV[1]: the document
-- @include documents

return { 1, live_documents({ ARGV[1] })[1] }
