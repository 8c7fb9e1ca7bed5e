from tidemill.testing.contract.lost_reply import *
