from tidemill.testing.contract.cluster.signals import *
