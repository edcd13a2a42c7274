#!lua flags=allow-oom
-- CheckpointStore.delete.
-- ARGV[1]: the orchestrator
-- ARGV[2]: the session
-- @include contents

remove_checkpoints(ARGV[1], ARGV[2])
return { 1 }
