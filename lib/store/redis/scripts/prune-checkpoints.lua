#!lua flags=allow-oom
-- CheckpointStore.prune.
-- ARGV[1]: the orchestrator
-- ARGV[2]: the session
-- ARGV[3]: the number of checkpoints to keep
-- @include contents

local first, latest = checkpoint_range(ARGV[1], ARGV[2])
return { 1, first and prune_checkpoints(ARGV[1], ARGV[2], tonumber(ARGV[3]), first, latest) or 0 }
