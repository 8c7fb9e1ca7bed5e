from penstock.testing.contract.settle_then import *
