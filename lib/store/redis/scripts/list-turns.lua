#!lua flags=no-writes
-- TurnLedger.list.
-- ARGV[1]: the session
-- ARGV[2]: the position after which to start
-- ARGV[3]: the maximum number of turns
-- ARGV[4]: the order, 'asc' or 'desc'
-- ARGV[5]: 1 for open turns only, else 0
-- ARGV[6..]: the statuses; none for every status
-- @include common, lane

local after, limit, latest_first = ARGV[2], tonumber(ARGV[3]), ARGV[4] == 'desc'
local wanted = nil
for i = 6, #ARGV do
  wanted = wanted or {}
  wanted[ARGV[i]] = true
end
local first = '-inf'
-- Open turns start at the head, so the lane's history is not read.
if ARGV[5] == '1' then
  local head = redis.call('HGET', lane_key(ARGV[1]), 'head')
  if not head then return { 1, {} } end
  first = redis.call('ZSCORE', key('turns', ARGV[1]), head)
  if not latest_first and tonumber(after) < tonumber(first) then after = first - 1 end
end
local function next_ids()
  local lane = key('turns', ARGV[1])
  if latest_first then
    return redis.call('ZRANGE', lane, '(' .. after, first, 'BYSCORE', 'REV', 'LIMIT', 0, limit, 'WITHSCORES')
  end
  return redis.call('ZRANGE', lane, '(' .. after, '+inf', 'BYSCORE', 'LIMIT', 0, limit, 'WITHSCORES')
end
local found = {}
while #found < limit do
  local ids = next_ids()
  if #ids == 0 then break end
  for i = 1, #ids, 2 do
    local turn = read_turn(ids[i])
    after = ids[i + 1]
    if (not wanted or wanted[turn.status]) and #found < limit then found[#found + 1] = turn_reply(turn) end
  end
end
return { 1, found }
