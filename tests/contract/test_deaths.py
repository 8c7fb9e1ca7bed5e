from tidemill.testing.contract.jobs.deaths import *
