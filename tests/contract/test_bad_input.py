from penstock.testing.contract.bad_input import *
