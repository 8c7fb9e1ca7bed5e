from penstock.testing.contract.blocking import *
