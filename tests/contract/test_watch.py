from penstock.testing.contract.watch import *
