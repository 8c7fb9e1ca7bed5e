from tidemill.testing.contract.concurrency import *
