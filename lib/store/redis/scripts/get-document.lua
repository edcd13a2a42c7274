#!lua flags=no-writes
-- @include documents

return { 1, live_documents({ ARGV[1] })[1] }
