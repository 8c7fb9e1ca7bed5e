from tidemill.testing.contract.lifecycle import *
