from penstock.testing.contract.replay import *
