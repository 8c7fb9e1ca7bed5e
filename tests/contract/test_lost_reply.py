from tidemill.testing.contract.faults.lost_reply import *
