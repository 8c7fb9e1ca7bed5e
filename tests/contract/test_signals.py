from tidemill.testing.contract.signals import *
