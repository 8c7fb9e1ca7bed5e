from tidemill.testing.contract.storage import *
