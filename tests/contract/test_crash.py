from penstock.testing.contract.crash import *
