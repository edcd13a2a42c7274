-- Returns a page of the members of a state's index that were last active before a time, the longest idle first.
-- @include common

local function idle_members(state, active_before, offset, limit)
  local score = string.format('(%.0f', -active_before)
  return redis.call('ZRANGE', key('state', state), '+inf', score, 'BYSCORE', 'REV', 'LIMIT', offset, limit)
end
