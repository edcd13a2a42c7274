#!lua flags=allow-oom
-- @include contents

remove_checkpoints(ARGV[1], ARGV[2])
return { 1 }
