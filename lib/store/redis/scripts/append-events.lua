#!lua
-- TurnEventLog.append. Returns the offset of the last event.
-- ARGV[1]: the session
-- ARGV[2]: the turn
-- ARGV[3]: the fence of the hold
-- ARGV[4]: the number of the batch
-- ARGV[5]: the number of events
-- ARGV[6]: the events as a JSON array
-- ARGV[7]: the event as JSON that precedes them if the last batch belongs to an earlier attempt
-- ARGV[8]: how long the events are kept after the end of the turn, in milliseconds
-- @include common, turn-events

local session_id, turn_id, fence, batch, count, events = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6]
local lane = redis.call('HMGET', key('lane', session_id), 'head', 'fence', 'leaseUntil')
if lane[1] ~= turn_id or lane[2] ~= fence or not lane[3] then
  return refuse('TURN_FENCED', 'session_id', session_id, 'turn_id', turn_id, 'fence', fence)
end
local last, first = last_batch(turn_id), 1
if last then
  local last_fence, last_number = last[2][2], tonumber(last[2][4])
  if last_fence == fence and last_number >= batch then return { 1, last_offset(last) } end
  first = last_offset(last) + 1
  if last_fence ~= fence then
    events = '[' .. ARGV[7] .. ',' .. string.sub(events, 2)
    first = first + 1
  end
end
local offset = string.format('%.0f', first + count - 1)
redis.call('XADD', key('events', turn_id), offset .. '-0', 'fence', fence, 'batch', batch, 'events', events)
local turn = key('turn', turn_id)
if redis.call('HGET', turn, 'eventTtl') ~= ARGV[8] then redis.call('HSET', turn, 'eventTtl', ARGV[8]) end
redis.call('PUBLISH', base .. 'appended:' .. turn_id, offset)
return { 1, tonumber(offset) }
