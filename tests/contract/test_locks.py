from tidemill.testing.contract.cluster.locks import *
