from tidemill.testing.contract.unique.keys import *
