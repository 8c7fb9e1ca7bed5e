from tidemill.testing.contract.children import *
