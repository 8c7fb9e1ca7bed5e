from tidemill.testing.contract.unique.unique_keys import *
