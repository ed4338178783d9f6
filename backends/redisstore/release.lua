-- Frees a lock and wakes those who wait for it. The order stays.
-- KEYS: lock, order. ARGV: owner, the lock's value or '' to compare the owner alone, how long to keep the order in ms, channel.
-- Returns 1, or 0 for lost.
local held = redis.call('GET', KEYS[1])
if held and (held == ARGV[2] or ARGV[2] == '' and string.match(held, '^%d+ %d+ (.*)$') == ARGV[1]) then
  -- The owners that have left lately, newest first: a release whose reply was lost is sent again, and must hear that it
  -- happened, however many holders came and went meanwhile. After 10 s without a release only the newest matters.
  local time = redis.call('TIME')
  local seconds = tonumber(time[1])
  local order = redis.call('HMGET', KEYS[2], 'left', 'leftat')
  local left = ARGV[1] .. '\n'
  if order[1] and math.abs(seconds - order[2]) <= 10 then
    left = left .. string.sub(order[1], 1, 1000)
  end
  redis.call('HSET', KEYS[2], 'left', left, 'leftat', time[1])
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
  redis.call('DEL', KEYS[1])
  redis.pcall('PUBLISH', ARGV[4], '') -- may be forbidden; waiters also look when the lease ends
  return 1
end
local left = redis.call('HGET', KEYS[2], 'left')
if left and string.find('\n' .. left, '\n' .. ARGV[1] .. '\n', 1, true) then
  return 1
end
return 0
