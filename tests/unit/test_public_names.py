"""The public names are there, and cost nothing before they are used."""

import importlib.metadata
import subprocess
import sys

import tidemill


def test_every_public_name_can_be_had_and_has_one_home() -> None:
    homes = [name for names in tidemill._HOME.values() for name in names]
    assert sorted(homes) == sorted(tidemill.__all__)
    for module, names in tidemill._HOME.items():
        for name in names:
            assert getattr(tidemill, name) is getattr(importlib.import_module(module), name)
    assert dir(tidemill) == tidemill.__all__
    assert not hasattr(tidemill, "nonsense")


def test_importing_the_package_loads_no_event_loop() -> None:
    heavy = "('asyncio', 'msgspec', 'sqlite3')"
    code = f"import sys, tidemill; print([name for name in {heavy} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def test_the_version_is_that_of_the_installed_package() -> None:
    assert tidemill.__version__ == importlib.metadata.version("tidemill")


def test_what_only_workers_need_is_not_public() -> None:
    """Of a user's three objects: neither methods for workers nor anything that is only meant for engines."""
    for kind, names in {
        tidemill.Tidemill: ("work_on", "adopt", "transactions", "atransactions"),
        tidemill.Job: ("record", "refresh"),
        tidemill.RunningJob: ("abort", "completing", "leave_to_transaction"),
    }.items():
        assert not [name for name in names if hasattr(kind, name)]
