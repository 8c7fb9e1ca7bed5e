from tidemill.testing.contract.locks import *
