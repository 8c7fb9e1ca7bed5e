from tidemill.testing.contract.jobs.drop import *
