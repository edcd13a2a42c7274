-- @include common

local lease_key = key('lease', ARGV[1])
local lease = read(lease_key)

local function is_own(holder, fence)
  return lease and lease.holder == holder and lease.fence == fence and tonumber(lease.expiresAt) > now
end
