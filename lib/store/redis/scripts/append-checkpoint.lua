#!lua
-- CheckpointStore.append.
-- ARGV[1]: the orchestrator
-- ARGV[2]: the session
-- ARGV[3]: the index
-- ARGV[4]: the checkpoint as JSON
-- ARGV[5]: the number of checkpoints to keep, or '' for all
-- @include common, contents

local orchestrator, session_id, index = ARGV[1], ARGV[2], ARGV[3]
if is_erased(session_id) then return refuse('SESSION_NOT_FOUND', 'session_id', session_id) end
local first, latest = checkpoint_range(orchestrator, session_id)
if tonumber(index) ~= (latest or -1) + 1 then
  return refuse('CHECKPOINT_CONFLICT', 'orchestrator', orchestrator, 'session_id', session_id, 'turn_index', index)
end
append_checkpoint(orchestrator, session_id, index, ARGV[4], tonumber(ARGV[5]), first)
return { 1, now }
