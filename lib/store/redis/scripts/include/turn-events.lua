-- A stream for a turn: an entry is a batch, its id the offset of the batch's last event. It expires when the turn ends.
-- @include common

local function last_offset(entry)
  return tonumber(string.match(entry[1], '^%d+'))
end

-- Returns the last batch of a turn, or nil.
local function last_batch(turn_id)
  return redis.call('XREVRANGE', key('events', turn_id), '+', '-', 'COUNT', 1)[1]
end
