from penstock.testing.contract.concurrency import *
