from tidemill.testing.contract.claim_numbers import *
