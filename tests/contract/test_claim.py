from tidemill.testing.contract.claim import *
