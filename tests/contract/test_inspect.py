from penstock.testing.contract.inspect import *
