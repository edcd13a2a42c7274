-- Records the tokens that a held turn used.
-- @include documents, epochs, lane

-- Sets `spent` of the stored turn, and of `turn` if it is given. Does nothing without arguments.
-- ARGV[first]: the tokens as JSON
-- ARGV[first + 1]: the namespaces as JSON of the document that counts them; absent: it does not count
-- ARGV[first + 2..first + 10]: the arguments of append_document
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
