from tidemill.testing.contract.jobs.cancel import *
