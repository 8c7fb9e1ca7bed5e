from penstock.testing.contract.lifecycle import *
