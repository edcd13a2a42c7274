-- Offers a lane without a running turn. The pause before the next offer doubles until a worker claims the lane or
-- renews its lease.
-- @include common, lane

-- Returns a lane of the index, or nil if a worker runs it. Such a lane is checked again when its lease ends.
local function idle_lane(id, attention_at)
  local lease_until, offers, first_at =
    unpack(redis.call('HMGET', lane_key(id), 'leaseUntil', 'offers', 'firstAttentionAt'))
  if lease_until and tonumber(lease_until) > now then
    attend(id, lease_until)
    return nil
  end
  return { id = id, offers = tonumber(offers or 0), first_at = offers and first_at or attention_at }
end

local function offer(lane)
  redis.call('HSET', lane_key(lane.id), 'offers', lane.offers + 1, 'firstAttentionAt', lane.first_at)
  attend(lane.id, whole(now + math.min(NOTIFY_GRACE_MS * 2 ^ lane.offers, MAX_OFFER_BACKOFF_MS)))
  return lane.id
end
