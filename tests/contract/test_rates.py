from penstock.testing.contract.rates import *
