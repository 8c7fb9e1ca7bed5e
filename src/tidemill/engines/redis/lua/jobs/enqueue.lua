--# adds
--# include store
-- Stores new jobs, each unless its id is known.
-- Takes: A.jobs, rows of new jobs with their blobs (see store.lua). Or, if all may run at once, A.ranges: {queue, priority,
-- count} of jobs that go to the same lane one after another. Their blobs are the packed default options of a queue; of each
-- job its id and its tail (see record.lua); the bodies of those whose numbers are in A.apart.
-- Answers: of each 1 (created), 0 (known) or the id of the job that it met; if all are new and came as ranges, their number alone.
-- UNKNOWNPARENT, NOTUNIQUE: nothing was stored.

local function rows()
    local list, answers, ids, fresh = {}, {}, {}, 0
    for n, row in ipairs(A.jobs) do
        list[n] = S.read_new(row)
        ids[n] = list[n].id
    end
    S.fetch(ids)
    local refused = A.unique and S.foresee(list)
    if refused then
        return redis.error_reply(refused)
    end
    local unknown = S.unknown_parent(list)
    if unknown then
        return redis.error_reply('UNKNOWNPARENT ' .. S.hex(unknown))
    end
    for _, id in ipairs(ids) do
        fresh = fresh + (S.known(id) and 0 or 1)
    end
    if fresh > 0 then
        S.draw(fresh)
    end
    if not A.unique then -- a job that is stored may be replaced by the next one
        S.gather()
    end
    local naming = A.naming
    for n, new in ipairs(list) do
        A.naming = #new.parents > 0 and naming or nil -- the caller knows the state of the others
        new.naming = naming
        answers[n] = S.store(new)
    end
    A.naming = naming
    if not A.unique then
        S.flush()
    end
    return answers
end

-- Lanes of queues without limits and groups, each with what comes to it.
local lanes = {}

local function lane_of(queue, priority)
    local key = S.lane_key(queue, priority, 0, '')
    local lane = lanes[key]
    if not lane then
        lane = { queue = queue, member = string.char(48 + priority), order = {} }
        lanes[key] = lane
    end
    return lane.order
end

local function write_lanes()
    for key, lane in pairs(lanes) do
        S.each('ZADD', key, lane.order)
        call('ZADD', P .. 'lanes/' .. lane.queue .. '/0', 0, lane.member)
        call('ZADD', P .. 'open/' .. lane.queue .. '/0', 0, lane.member)
        S.tally(lane.queue, READY, #lane.order / 2)
        S.ready_signal(lane.queue)
    end
end

-- {position in the call: true} of ids that are known or come a second time; nil if there are none.
local function known_of(ids)
    local known, seen = nil, {}
    for n, raw in ipairs(call('HMGET', P .. 'job', unpack(ids))) do
        local id = ids[n]
        if raw or seen[id] then
            known = known or {}
            known[n] = true
        end
        seen[id] = true
    end
    return known
end

local function ranges()
    A.defaults = ARGV[4]
    local count, ids, apart = 0, {}, {}
    for _, range in ipairs(A.ranges) do
        count = count + range[3]
    end
    for n = 1, count do
        ids[n] = ARGV[2 * n + 3]
    end
    for n, number in ipairs(A.apart) do
        apart[number] = ARGV[2 * count + 4 + n]
    end
    local known = known_of(ids)
    local seq, since, jobs, bodies, at = S.seqs(count), S.be8(NOW), {}, {}, 0
    S.gather()
    for _, range in ipairs(A.ranges) do
        local order -- from the first new one on: a range of known jobs needs no lane
        for n = at + 1, at + range[3] do
            if not (known and known[n]) then
                if order == nil then
                    order = S.plain(S.found_queue(range[1])) and lane_of(range[1], range[2])
                end
                local id, body = ids[n], apart[n]
                local raw = (body and 'A' or 'E') .. struct.pack('>I8', seq) .. since .. ARGV[2 * n + 4]
                if order then
                    local last = #order
                    order[last + 1], order[last + 2] = seq, id
                    last = #jobs
                    jobs[last + 1], jobs[last + 2] = id, raw
                    if body then
                        last = #bodies
                        bodies[last + 1], bodies[last + 2] = id, body
                    end
                else
                    S.store_ready(id, S.decode(raw), body)
                end
            end
            seq = seq + 1
        end
        at = at + range[3]
    end
    S.flush()
    if #jobs > 0 then
        write_lanes()
        S.each('HSET', P .. 'job', jobs)
    end
    if #bodies > 0 then
        S.each('HSET', P .. 'body', bodies)
    end
    if not known then
        return count
    end
    local answers = {}
    for n = 1, count do
        answers[n] = known[n] and 0 or 1
    end
    return answers
end

local answer = (A.jobs and rows or ranges)()
if type(answer) == 'table' and answer.err then
    return answer
end
S.finish()
return S.answer(answer)
