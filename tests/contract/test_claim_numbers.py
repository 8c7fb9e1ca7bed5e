from tidemill.testing.contract.jobs.claim_numbers import *
