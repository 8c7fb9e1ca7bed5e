from penstock.testing.contract.queues import *
