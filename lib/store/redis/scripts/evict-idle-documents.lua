#!lua flags=allow-oom
-- ARGV: namespace, how many stay, limit.
-- @include common, documents

-- Of expired ones in a run, so that nobody waits for long.
local MOST_EXPIRED = 10000

local at, keep, limit = key('idle', ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if redis.call('ZCARD', at) <= keep then return { 1, 0 } end
remove_expired_documents(MOST_EXPIRED)
-- Those that are left may all be of this namespace: rather too few are evicted than one too many, unless all are to go.
local expired = keep > 0 and redis.call('ZCOUNT', base .. 'expiring', '-inf', now) or 0
local count = math.min(redis.call('ZCARD', at) - expired - keep, limit)
if count <= 0 then return { 1, 0 } end
local documents = redis.call('ZRANGE', at, 0, count - 1)
for _, document in ipairs(documents) do remove_document(document) end
return { 1, #documents }
