from tidemill.testing.contract.engines import *
