--# at need
--# include core
-- The epoch: a token that changes when a call notices that the server has lost data. Every heartbeat answers it, and every
-- client remembers it. A client that comes with another epoch has not yet learned of the lost data, and this answer reports
-- it. So every client learns of it, whatever answers get lost and whatever clocks say. An epoch begins with a number that
-- grows: so an epoch that was lost itself is recognized.

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
