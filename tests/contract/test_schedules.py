from penstock.testing.contract.schedules import *
