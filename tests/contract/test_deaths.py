from tidemill.testing.contract.deaths import *
