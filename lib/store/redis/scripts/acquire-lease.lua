#!lua flags=allow-oom
-- LeaseStore.acquire. Returns the fence, or false if another holder has the lease.
-- ARGV[1]: the name of the lease
-- ARGV[2]: the holder
-- ARGV[3]: the duration in milliseconds
-- @include common, leases

local holder = ARGV[2]
if lease and lease.holder ~= holder and tonumber(lease.expiresAt) > now then return { 1, false } end
local fence = lease and tonumber(lease.fence) or 0
if not lease or lease.holder ~= holder then fence = fence + 1 end
redis.call('HSET', lease_key, 'holder', holder, 'fence', fence, 'expiresAt', now + ARGV[3])
return { 1, fence }
