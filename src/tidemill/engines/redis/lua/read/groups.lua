--# reads
--# include show
-- Reads dead-letter groups, in the order of queue, task and fingerprint.
-- Takes: A.queue, A.task: only of these, or nil; A.after: {queue, member} of the last group seen, or nil; A.size, the most
-- groups. A member is task, zero byte, fingerprint.
-- Answers: {queue, member, count, first end, last end, id of the newest, its last failure or false} each.

local rows = {}

local function add(name, member)
    local key = P .. 'group/' .. name .. '/' .. member
    local first, last = call('ZRANGE', key, 0, 0, 'WITHSCORES'), call('ZRANGE', key, -1, -1, 'WITHSCORES')
    local id = last[1]:sub(9)
    local failure = call('HGET', P .. 'f/' .. id, S.job(id).fc)
    rows[#rows + 1] = {
        name, member, call('ZCARD', key), tonumber(first[2]), tonumber(last[2]), id, failure and S.failure(failure) or false,
    }
end

for _, name in ipairs(A.queue and { A.queue } or S.queue_names()) do
    local after = A.after
    if #rows < A.size and not (after and S.less(name, after[1])) then
        local from = after and after[1] == name and '(' .. after[2] or A.task and '[' .. A.task .. '\0' or '-'
        local till = A.task and '(' .. A.task .. '\1' or '+'
        for _, member in ipairs(call('ZRANGEBYLEX', P .. 'groups/' .. name, from, till, 'LIMIT', 0, A.size - #rows)) do
            add(name, member)
        end
    end
end
return rows
