-- The events of a turn are a stream. An entry is a batch, and its id is the offset of the batch's last event. The
-- stream expires a while after the end of the turn.
-- @include common

local function last_offset(entry)
  return tonumber(string.match(entry[1], '^%d+'))
end

-- Returns the last batch of a turn, or nil.
local function last_batch(turn_id)
  return redis.call('XREVRANGE', key('events', turn_id), '+', '-', 'COUNT', 1)[1]
end
