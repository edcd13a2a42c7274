-- Epochs of namespaces. A reset starts a new epoch in the lane of its session, as JSON by namespace. A turn stores the
-- epochs of its first claim. Writes that belong to an earlier epoch are rejected (STA-23).
-- @include common

local CONVERSATION = '["agent-sessions:conversation"]'

local function begin_epoch(session_id, lane, namespaces, epoch)
  local epochs = cjson.decode(lane.epochs or '{}')
  for _, namespace in ipairs(namespaces) do epochs[namespace] = epoch end
  write(key('lane', session_id), lane, { epochs = cjson.encode(epochs) })
end

-- Returns the written namespaces (JSON) that were reset since the turn was first claimed, or nil.
local function reset_since(lane_epochs, turn_epochs, namespaces)
  if (lane_epochs or '') == (turn_epochs or '') then return nil end
  local before, since, reset = cjson.decode(turn_epochs or '{}'), cjson.decode(lane_epochs or '{}'), {}
  for _, namespace in ipairs(cjson.decode(namespaces)) do
    if before[namespace] ~= since[namespace] then reset[#reset + 1] = namespace end
  end
  return #reset > 0 and reset or nil
end
