# ruff: noqa: F403  (tests are taken by star import)
from tests.integration.any_server.connections import *
from tests.integration.any_server.two_processes import *
