from penstock.testing.contract.gates import *
