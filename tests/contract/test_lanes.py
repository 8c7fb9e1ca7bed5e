from penstock.testing.contract.lanes import *
