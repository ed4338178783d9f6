-- Grants a lock, or says how long it is held still.
-- KEYS: lock, order. ARGV: owner, ttl in ms, generation, how long to keep the order in ms.
-- Returns {1, sequence, generation} granted, {0, ms left} busy.
local held = redis.call('GET', KEYS[1])
if held then
  local generation, sequence, owner = string.match(held, '^(%d+) (%d+) (.*)$')
  if owner ~= ARGV[1] then
    return {0, redis.call('PTTL', KEYS[1])}
  end
  -- The same request again. It never shortens the lease: its first answer may be believed already.
  if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
  end
  redis.call('PEXPIRE', KEYS[2], ARGV[4])
  return {1, tonumber(sequence), tonumber(generation)}
end

-- The clock rule of internal/lease, in ticks of 16 us of this server's time. 48 bits are exact in a Lua number.
local time = redis.call('TIME')
local tick = math.floor((time[1] * 1000000 + time[2]) / 16)
local order = redis.call('HMGET', KEYS[2], 'last', 'at')
local sequence = tick
if order[1] then
  sequence = math.max(tick, order[1] + math.max(1, tick - order[2]))
end
if sequence >= 2 ^ 48 then
  return redis.error_reply('PAWLFULL no sequence number is left for this key')
end
local number = string.format('%.0f', sequence)
redis.call('SET', KEYS[1], ARGV[3] .. ' ' .. number .. ' ' .. ARGV[1], 'PX', ARGV[2])
redis.call('HSET', KEYS[2], 'last', number, 'at', string.format('%.0f', tick))
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return {1, sequence, tonumber(ARGV[3])}
