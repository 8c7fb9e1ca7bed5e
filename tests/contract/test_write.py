from tidemill.testing.contract.jobs.write import *
