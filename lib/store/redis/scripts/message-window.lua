#!lua flags=no-writes
-- @include contents

return { 1, read_window(ARGV[1], tonumber(ARGV[2])) }
