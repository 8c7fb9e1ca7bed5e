from penstock.testing.contract.settle import *
