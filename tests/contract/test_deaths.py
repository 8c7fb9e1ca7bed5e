from penstock.testing.contract.deaths import *
