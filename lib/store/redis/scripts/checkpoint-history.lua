#!lua flags=no-writes
-- CheckpointStore.history.
-- ARGV[1]: the orchestrator
-- ARGV[2]: the session
-- ARGV[3]: the index below which to start, or ''
-- ARGV[4]: the maximum number of checkpoints
-- @include contents

local at = checkpoints_key(ARGV[1], ARGV[2])
local first, latest = checkpoint_range(ARGV[1], ARGV[2])
local history = {}
if first then
  local last = math.min(latest, (tonumber(ARGV[3]) or math.huge) - 1)
  first = math.max(first, last - ARGV[4] + 1)
  for index = last, first, -1 do history[#history + 1] = read_checkpoint(at, index) end
end
return { 1, history }
