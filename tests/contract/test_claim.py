from tidemill.testing.contract.jobs.claim import *
