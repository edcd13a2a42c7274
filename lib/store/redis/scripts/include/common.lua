-- The start of every script. Keys are named `{prefix}:kind:id`; KEYS[1] is `{prefix}:`, and the tag keeps all of them
-- on one shard of a cluster. SEPARATOR, which names must not contain, joins the parts of an id.
--
-- A row is a hash; absent fields are null. A script returns 1 and its result, or 0, an error code and its details. It
-- must reject before its first write, because Redis does not roll back.

local SEPARATOR = '\31'
local base = KEYS[1]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- Formats an integer. Redis would format it as a fraction, which takes longer than the command.
local function whole(number)
  return string.format('%d', number)
end

local stamp = whole(now)

local function arguments_from(first)
  local rest = {}
  for i = first, #ARGV do rest[#rest + 1] = ARGV[i] end
  return rest
end

local function key(kind, id)
  return base .. kind .. ':' .. id
end

-- Returns the row at a key, or nil if it does not exist.
local function read(at)
  local flat = redis.call('HGETALL', at)
  if #flat == 0 then return nil end
  local row = {}
  for i = 1, #flat, 2 do row[flat[i]] = flat[i + 1] end
  return row
end

-- Calls a command with any number of arguments, in pieces, because Lua's stack holds only some thousands of values.
-- Returns the last reply.
local function call_with(command, at, arguments)
  local answer
  for from = 1, #arguments, 1000 do
    answer = redis.call(command, at, unpack(arguments, from, math.min(from + 999, #arguments)))
  end
  return answer
end

-- Changes fields of a stored row; false removes a field.
local function write(at, row, changes)
  local set, gone = {}, {}
  for field, value in pairs(changes) do
    if value ~= false then
      set[#set + 1] = field
      set[#set + 1] = value
      row[field] = value
    elseif row[field] ~= nil then
      gone[#gone + 1] = field
      row[field] = nil
    end
  end
  call_with('HSET', at, set)
  call_with('HDEL', at, gone)
end

local function flat(row)
  local fields = {}
  for field, value in pairs(row) do
    fields[#fields + 1] = field
    fields[#fields + 1] = value
  end
  return fields
end

local function refuse(code, ...)
  return { 0, code, ... }
end

-- True if a session is not the required one, whose createdAt and userId are given as 1763683200000:ann.
local function is_other_session(required, created_at, user_id)
  local required_at, required_user = string.match(required, '^(%-?%d+):(.*)$')
  return required_at and (tonumber(required_at) ~= tonumber(created_at) or required_user ~= user_id)
end

local function is_erased(session_id)
  return redis.call('EXISTS', key('tombstone', session_id)) == 1
end
