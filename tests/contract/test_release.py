from penstock.testing.contract.release import *
