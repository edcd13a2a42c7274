-- Claims the head of a lane for a worker: separately, with an accept, or after a settle.
-- @include common, contents, documents, lane

-- Returns the claim in ARGV:
-- ARGV[first]: the holder
-- ARGV[first + 1]: leaseMs
-- ARGV[first + 2]: the settings for lost turns, as lossesText returns them
-- ARGV[first + 3]: the data that the worker needs, as needsText returns it, or ''
local function claim_from(first)
  return {
    holder = ARGV[first], lease_ms = ARGV[first + 1], losses = ARGV[first + 2], needs = ARGV[first + 3],
  }
end

-- Returns whether a lane is paused. A lane with its own pause is not offered until it is opened.
local function is_paused(session_id, lane)
  if lane.mode ~= 'paused' then return mode_of_all() == 'paused' end
  attend(session_id, nil)
  return true
end

-- Returns whether this claim holds the lane. A repeated claim then returns the same turn.
local function is_held_by(lane, claim)
  return lane.leaseUntil ~= nil and lane.holder == claim.holder and not is_lapsed(lane)
end

-- Returns a claimed turn with its data. Omits data that the client already has: its turn, the session, and the
-- checkpoint that it just wrote. A first attempt does not have steps.
local function claimed_reply(session_id, lane, turn, claim, known)
  local orchestrator = turn.orchestrator
  local needs = claim.needs ~= '' and cjson.decode(claim.needs) or {}
  local window = needs.windows and needs.windows[orchestrator]
  local documents = needs.documents and needs.documents[orchestrator]
  return {
    lane.fence,
    not known.turn and turn_reply(turn),
    not known.session and redis.call('HGETALL', key('session', session_id)),
    known.checkpoint_of == orchestrator and now or latest_checkpoint(orchestrator, session_id),
    window and read_window(session_id, window) or false,
    not known.is_first and redis.call('HGETALL', key('steps', turn.id)),
    documents and live_documents(documents) or false,
    lane.epochs or false,
  }
end

-- Assigns the head to a worker.
local function begin_attempt(session_id, lane, head, claim, known)
  local at, lease_until = turn_key(head.id), now + claim.lease_ms
  if has_begun(head) then
    if head.status == 'waiting' and head.waitStep then
      store_step(head.id, head.waitStep, '{"received":false}')
    end
    write(at, head, {
      status = 'running', dueAt = false, waitSignal = false, waitStep = false, waitUntil = false,
    })
  else
    head.status, head.startedAt, known.is_first = 'running', stamp, true
    redis.call('HSET', at, 'status', 'running', 'startedAt', stamp)
    if lane.epochs then redis.call('HSET', at, 'epochs', lane.epochs) end
  end

  -- A lane that continues keeps its due time, the end of the previous lease, which is early enough.
  if not lane.leaseUntil or is_lapsed(lane) or lease_until < tonumber(lane.leaseUntil) then
    attend(session_id, whole(lease_until))
  end
  -- At least the clock, so that a recreated lane, or a server that lost its last seconds, never repeats a fence.
  lane.fence = whole(math.max((lane.fence or 0) + 1, now))
  redis.call('HSET', lane_key(session_id),
    'head', head.id, 'fence', lane.fence, 'holder', claim.holder, 'leaseUntil', whole(lease_until))
  if lane.offers then redis.call('HDEL', lane_key(session_id), 'offers', 'firstAttentionAt') end
  return claimed_reply(session_id, lane, head, claim, known)
end

local SUSPECT_FROM_LOST = 2

-- Counts a lost attempt. The turn runs again immediately, is queued after a pause, or ends.
local function after_loss(head, claim)
  local max_lost, pause_ms, max_pause_ms = string.match(claim.losses, '^(%d+) (%d+) (%d+)')
  local lost, since_step = (head.lost or 0) + 1, (head.lostSinceStep or 0) + 1
  write(turn_key(head.id), head, { lost = lost, lostSinceStep = since_step })
  if since_step >= tonumber(max_lost) or lost >= 10 * max_lost then
    local message = 'The process that ran the turn was lost ' .. lost .. ' times, '
      .. since_step .. ' of them since its last step.'
    local failure = '{"name":"WorkerLostError","code":"WORKER_LOST","message":"' .. message .. '"}'
    end_turn(head, 'failed', 'error', failure)
    return read_turn(head.id)
  end
  if lost >= SUSPECT_FROM_LOST then
    local wait_ms = math.min(pause_ms * 2 ^ (lost - SUSPECT_FROM_LOST), tonumber(max_pause_ms))
    write(turn_key(head.id), head, { status = 'queued', dueAt = whole(now + wait_ms) })
    changed(head.id)
  end
  return head
end

local function takes_suspects(claim)
  return string.sub(claim.losses, -1) == 's'
end

-- Takes over a lane whose worker was lost. Returns the head if it runs again at once, else nil; then the lost turn with
-- its holder.
local function take_over(session_id, lane, head, claim)
  local mode, lost = end_before_next_attempt(head), nil
  if mode then
    stop_turn(head, mode)
  else
    local holder = lane.holder
    head = after_loss(head, claim)
    lost = { turn_reply(head), holder }
    if head.status == 'running' then return head, lost end
  end
  if mode or head.status ~= 'queued' then drop_head(session_id, lane) end
  rest_lane(session_id, lane)
  return nil, lost
end

-- Returns the head if it is due and no live lease holds it, else false; then the lost turn with its holder or false,
-- and whether the head is a suspect that the claim does not accept.
local function claim_lane(session_id, claim)
  local lane, lost = read_lane(session_id), false
  while lane.head do
    local head = read_turn(lane.head)
    if is_held_by(lane, claim) then return claimed_reply(session_id, lane, head, claim, {}), lost end
    local is_free = is_due(head)
    if lane.leaseUntil then is_free = is_lapsed(lane) end
    if not is_free or is_paused(session_id, lane) then return false, lost end
    local ready = head
    if lane.leaseUntil then
      local found
      ready, found = take_over(session_id, lane, head, claim)
      lost = found or lost
    elseif tonumber(head.lost or 0) >= SUSPECT_FROM_LOST and not takes_suspects(claim) then
      return false, lost, true
    end
    if ready then return begin_attempt(session_id, lane, ready, claim, {}), lost end
  end
  return false, lost
end
