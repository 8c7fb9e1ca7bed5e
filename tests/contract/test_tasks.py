from penstock.testing.contract.tasks import *
