--# at need
--# include core
-- The epoch: a token that changes when somebody finds that data was lost. Every client remembers the one that it was
-- answered by heartbeats; whoever comes with another one has to be told. So nobody is missed, whatever answers get lost and
-- whatever clocks say. It begins with a number that grows, so that one which was itself lost is known as such.

-- The number of an epoch, 0 for none.
function S.epoch_number(epoch)
    return tonumber(epoch and epoch:match('^%d+') or 0)
end

-- Data was lost. after: the number of an epoch that was known; the new one. `rolled` is for storage.lua.
function S.new_epoch(after)
    local number = math.max(after, S.epoch_number(call('HGET', P .. 'n', 'epoch')))
    local epoch = S.int(number + 1) .. '.' .. S.int(CLOCK)
    call('HSET', P .. 'n', 'epoch', epoch, 'rolled', S.int(CLOCK))
    return epoch
end
