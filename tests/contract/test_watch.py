from tidemill.testing.contract.jobs.watch import *
