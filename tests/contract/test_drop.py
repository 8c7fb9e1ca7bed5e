from penstock.testing.contract.drop import *
