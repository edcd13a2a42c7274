-- Epochs of namespaces: a reset begins one, in the lane of its session, as JSON by namespace. A turn remembers those
-- that it was claimed with first, and what belongs to an earlier one is not written any more (STA-23).
-- @include common

local CONVERSATION = '["agent-sessions:conversation"]'

local function begin_epoch(session_id, lane, namespaces, epoch)
  local epochs = cjson.decode(lane.epochs or '{}')
  for _, namespace in ipairs(namespaces) do epochs[namespace] = epoch end
  write(key('lane', session_id), lane, { epochs = cjson.encode(epochs) })
end

-- Of namespaces (JSON) that a begun turn writes to, those that were reset since it was claimed first; nil: none.
local function reset_since(lane_epochs, turn_epochs, namespaces)
  if (lane_epochs or '') == (turn_epochs or '') then return nil end
  local before, since, reset = cjson.decode(turn_epochs or '{}'), cjson.decode(lane_epochs or '{}'), {}
  for _, namespace in ipairs(cjson.decode(namespaces)) do
    if before[namespace] ~= since[namespace] then reset[#reset + 1] = namespace end
  end
  return #reset > 0 and reset or nil
end
