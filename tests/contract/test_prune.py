from penstock.testing.contract.prune import *
