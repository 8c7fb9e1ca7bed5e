from tidemill.testing.contract.faults.concurrency import *
