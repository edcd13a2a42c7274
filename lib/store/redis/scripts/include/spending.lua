-- Records the tokens that a held turn used.
-- @include documents, epochs, lane

-- ARGV, from the first on: the tokens as JSON, and of the document that counts them its namespace as JSON and what
-- append_document takes. A turn that is given gets them, too.
local function record_spending(lane, turn_id, first, turn)
  local spent, namespaces = ARGV[first], ARGV[first + 1]
  if not spent then return end
  redis.call('HSET', turn_key(turn_id), 'spent', spent)
  if turn then turn.spent = spent end
  if not namespaces then return end
  local epochs = turn and turn.epochs
  if not turn then epochs = redis.call('HGET', turn_key(turn_id), 'epochs') or nil end
  if not reset_since(lane.epochs, epochs, namespaces) then append_document(first + 2) end
end
