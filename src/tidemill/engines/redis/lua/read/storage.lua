--# reads
--# include core
-- Measures what is stored. Sizes are estimates of the server, from a few samples of each key.
-- Takes: nothing.
-- Answers: {{{part, bytes, entries}, ...}, how long ago lost data was noticed or -1, maxmemory-policy or '', whether an
-- append-only file is kept: 1, 0, or -1 for not known}.

local COUNT = { hash = 'HLEN', zset = 'ZCARD', list = 'LLEN', set = 'SCARD' }
local parts = {}

local function add(part, key)
    local bytes = call('MEMORY', 'USAGE', P .. key)
    if bytes then
        local sum, count = parts[part] or { 0, 0 }, COUNT[call('TYPE', P .. key).ok]
        parts[part] = { sum[1] + bytes, sum[2] + (count and call(count, P .. key) or 1) } -- a string is one entry
    end
end

for _, key in ipairs({ 'job', 'body', 'result', 'audit', 'tomb', 'watches' }) do
    add(key, key)
end
for _, key in ipairs({ 'meta', 'n', 'q', 'layers', 'layerv', 'tally', 'mins', 'stats', 'statn', 'task', 'defaults', 'schedule',
    'member', 'claimant', 'retired', 'lease', 'leaseend',
    'uniq', 'uniqp', 'uniqe', 'repl' }) do
    add('rest', key)
end
for _, name in ipairs(S.queue_names()) do
    for _, key in ipairs({ 'due/', 'blk/', 'exp/', 'runq/' }) do
        add('order', key .. name)
    end
    for suspect = 0, 1 do
        -- Lanes without a group are few; those of keys are left out.
        for priority = 0, 10 do
            add('order', 'r/' .. name .. '/' .. priority .. '/' .. suspect .. '/')
        end
    end
    for state = COMPLETED, CANCELLED do
        add('ended', 'end/' .. name .. '/' .. state)
    end
end
local answer = {}
for part, sum in pairs(parts) do
    answer[#answer + 1] = { part, sum[1], sum[2] }
end
local rolled = call('HGET', P .. 'n', 'rolled')
local function info_field(section, field)
    local said = redis.pcall('INFO', section) -- some users may not run INFO
    return type(said) == 'string' and said:match(field .. ':(%S+)') or ''
end
return { answer, rolled and math.max(0, CLOCK - rolled) or -1, info_field('memory', 'maxmemory_policy'),
    tonumber(info_field('persistence', 'aof_enabled')) or -1 }
