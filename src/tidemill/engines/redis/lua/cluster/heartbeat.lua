--# goes on
--# include claimants
--# include epoch
--# include stats
-- Records a heartbeat and compares what the member holds with what is stored: a job that was answered but is not held is
-- released, a fence that is held but not stored is lost. It also notices that the server has lost data (epoch.lua).
-- Takes: A.name, A.heartbeat, A.lease; A.claimants: {answered, held fences} each; A.seen, the number of the member's last
-- heartbeat; A.epoch, which that one answered; A.top, the highest fence that the member has got from us; A.version of the
-- keys; A.batch: the number of a batch of statistics, or nil, with its rows in A.stats (stats.lua). As blobs: the member's id, its record, the ids of the claimants.
-- Answers: {number, now, 1 if the member is new, lost fences, {{id, fence}, ...} that are asked to stop, epoch, 1 if data
-- was lost since that epoch, maxmemory-policy}.

local AHEAD = 7 * 24 * 60 * MINUTE -- a server's clock may have been wrong
local member, info = S.blob(), S.blob()
local raw = call('HGET', P .. 'member', member)
local m = raw and unpack_(raw) or { si = NOW, ss = NOW, at = NOW }

-- Everything that this member was answered must be stored here, or data was lost. (A member that was swept has no record:
-- that is no lost data.) If its epoch is older than ours, another call has noticed already. That may have been this member
-- itself, if the answer did not arrive.
local last = call('HMGET', P .. 'n', 'heartbeat', 'fence', 'epoch')
local epoch, fence, top = last[3], tonumber(last[2] or 0), A.top
for _, said in ipairs(A.claimants) do
    for _, held in ipairs(said[2]) do
        if held <= CLOCK + AHEAD then -- what was never handed out must not lift the counter for ever
            top = math.max(top, held)
        end
    end
end
local missing = tonumber(last[1] or 0) < A.seen or (m.n or A.seen) < A.seen or fence < top
local unknown = S.epoch_number(A.epoch) > S.epoch_number(epoch)
local found = unknown or (missing and (not A.epoch or A.epoch == epoch))
if found then
    epoch = S.new_epoch(S.epoch_number(A.epoch))
elseif not epoch then
    epoch = '1.' .. S.int(CLOCK)
    call('HSET', P .. 'n', 'epoch', epoch)
end
local rolled_back = found or (A.epoch and A.epoch ~= epoch)
if fence < top then
    call('HSET', P .. 'n', 'fence', S.int(top)) -- whatever clock this server has, no fence comes twice
end
if call('EXISTS', P .. 'meta') == 0 then -- see schema.py
    call('HSET', P .. 'meta', 'app', 'tidemill', 'version', A.version, 'oldest_code', A.version)
end
m.n = S.number('heartbeat')

if NOW - m.at > 2 * A.heartbeat then -- model.member.steady_after_heartbeat
    m.ss = NOW
end
if A.batch and A.batch > (m.sn or 0) then
    m.sn = A.batch
    S.add_stats(A.stats)
end
m.name, m.info, m.bt, m.ls, m.at = A.name, info, A.heartbeat, A.lease, NOW
call('HSET', P .. 'member', member, pack(m))
local lost, stops = {}, {}
for _, said in ipairs(A.claimants) do
    local claimant, held = S.blob(), {}
    for _, fence in ipairs(said[2]) do
        held[fence] = true
    end
    local running = {}
    for _, id in ipairs(S.held(claimant)) do
        local fence = S.fence(S.raw(id))
        running[fence] = true
        if not held[fence] then
            local j = S.job(id)
            if j.cn <= said[1] then
                S.release(id, j)
            end
        end
    end
    for _, fence in ipairs(said[2]) do
        if not running[fence] then
            lost[#lost + 1] = fence
        end
    end
end
for _, claimant in ipairs(call('SMEMBERS', P .. 'of/' .. member)) do
    for _, id in ipairs(S.held(claimant)) do
        local raw = S.raw(id)
        if raw:byte(1) ~= CLAIMED then -- a job that is asked to stop has no plain record
            local j = S.decode(raw)
            if j.ca then
                stops[#stops + 1] = { id, j.f }
            end
        end
    end
end
S.update_dependents(LIMIT)
S.finish()
-- A policy that evicts would lose jobs, and it may have been set since the engine was opened. Some users may not run INFO.
local said = redis.pcall('INFO', 'memory')
local policy = type(said) == 'string' and said:match('maxmemory_policy:(%S+)') or ''
return S.answer({ m.n, NOW, raw and 0 or 1, lost, stops, epoch, rolled_back and 1 or 0, policy,
    tonumber(call('HGET', P .. 'n', 'options') or 0) })
