--# reads
--# include ended
-- What ended from A.first to before A.last, from A.place on: see ended.lua. A.queue: of this one only.

return S.ended(A.first, A.last, A.whole, A.place, A.queue)
