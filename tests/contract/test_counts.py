from penstock.testing.contract.counts import *
