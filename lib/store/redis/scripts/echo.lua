#!lua flags=no-writes
-- Returns one value of each type that scripts return.
-- ARGV[1]: any text

return { 1, ARGV[1], false, {} }
