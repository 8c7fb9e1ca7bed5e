from tidemill.testing.contract.enqueue import *
