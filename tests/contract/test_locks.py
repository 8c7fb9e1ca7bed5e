from penstock.testing.contract.locks import *
