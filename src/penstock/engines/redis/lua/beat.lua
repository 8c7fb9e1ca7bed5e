--# goes on
--# include claimants
-- A.name, A.beat, A.lease, A.claimants: {answered, held fences}, A.seen: the number of its last beat, A.top: the
-- highest fence it has held, A.version of the keys; the member's id, its record and the claimants' ids as blobs.
-- Answers {number, now, new, lost fences, {{id, fence}, ...} asked to stop, 1 if data was lost, maxmemory-policy}.

local member, info = S.blob(), S.blob()
local raw = call('HGET', P .. 'member', member)
local m = raw and unpack_(raw) or { si = NOW, ss = NOW, at = NOW }

-- What this member was told must be here. (A member that was swept has no record, and that is no loss.)
local last = call('HMGET', P .. 'n', 'beat', 'fence', 'rolled')
local rolled_back = tonumber(last[1] or 0) < A.seen or (m.n or A.seen) < A.seen or tonumber(last[2] or 0) < A.top
if rolled_back then
    call('HSET', P .. 'n', 'rolled', S.int(CLOCK))
elseif m.ck and tonumber(last[3] or 0) > m.ck then
    rolled_back = true -- somebody else has noticed it since
elseif m.rb and m.n > A.seen then
    rolled_back = true -- it was told so, but that answer has not arrived
end
m.rb = rolled_back or nil
if tonumber(last[2] or 0) < A.top then
    call('HSET', P .. 'n', 'fence', S.int(A.top)) -- whatever clock this server has, no fence comes twice
end
if call('EXISTS', P .. 'meta') == 0 then -- see schema.py
    call('HSET', P .. 'meta', 'app', 'penstock', 'version', A.version, 'oldest_code', A.version)
end
m.n, m.ck = S.number('beat'), CLOCK

if NOW - m.at > 2 * A.beat then -- model.member.steady_after_beat
    m.ss = NOW
end
m.name, m.info, m.bt, m.ls, m.at = A.name, info, A.beat, A.lease, NOW
call('HSET', P .. 'member', member, pack(m))
local lost, asked = {}, {}
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
                S.give_back(id, j)
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
        if raw:byte(1) ~= CLAIMED then -- who is asked to stop has no plain record
            local j = S.decode(raw)
            if j.ca then
                asked[#asked + 1] = { id, j.f }
            end
        end
    end
end
S.tell_children(LIMIT)
S.finish()
-- A policy that evicts would lose jobs: it may have been set since we were opened. Not everybody may ask.
local said = redis.pcall('INFO', 'memory')
local policy = type(said) == 'string' and said:match('maxmemory_policy:(%S+)') or ''
return { m.n, NOW, raw and 0 or 1, lost, asked, rolled_back and 1 or 0, policy }
