#!lua flags=no-writes
-- Returns one value of each type that scripts return, and ARGV[1].

return { 1, ARGV[1], false, {} }
