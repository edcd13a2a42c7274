#!lua flags=no-writes
-- CheckpointStore.load.
-- ARGV[1]: the orchestrator
-- ARGV[2]: the session
-- ARGV[3]: the index, or '' for the latest
-- @include contents

if ARGV[3] == '' then return { 1, latest_checkpoint(ARGV[1], ARGV[2]) } end
return { 1, read_checkpoint(checkpoints_key(ARGV[1], ARGV[2]), ARGV[3]) }
