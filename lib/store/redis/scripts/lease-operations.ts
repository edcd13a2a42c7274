import { thrifty } from './script.js';

const LEASES = /* lua */ `
local lease_key = key('lease', ARGV[1])
local lease = read(lease_key)

local function is_own(holder, fence)
  return lease and lease.holder == holder and lease.fence == fence and tonumber(lease.expiresAt) > now
end
`;

/** ARGV: name, holder, ttlMs. */
export const ACQUIRE_LEASE = thrifty(
  'acquire-lease',
  [LEASES],
  /* lua */ `
local holder = ARGV[2]
if lease and lease.holder ~= holder and tonumber(lease.expiresAt) > now then return { 1, false } end
local fence = lease and tonumber(lease.fence) or 0
if not lease or lease.holder ~= holder then fence = fence + 1 end
redis.call('HSET', lease_key, 'holder', holder, 'fence', fence, 'expiresAt', now + ARGV[3])
return { 1, fence }
`,
);

/** The row stays when it lapses, so that the fence goes on. ARGV: name, holder, fence, ttlMs. */
export const RENEW_LEASE = thrifty(
  'renew-lease',
  [LEASES],
  /* lua */ `
if not is_own(ARGV[2], ARGV[3]) then return { 1, 0 } end
redis.call('HSET', lease_key, 'expiresAt', now + ARGV[4])
return { 1, 1 }
`,
);
