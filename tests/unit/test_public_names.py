"""The public names are there, and cost nothing before they are used."""

import importlib
import subprocess
import sys

import penstock


def test_every_public_name_can_be_had_and_has_one_home() -> None:
    homes = [name for names in penstock._HOME.values() for name in names]
    assert sorted(homes) == sorted(penstock.__all__)
    for module, names in penstock._HOME.items():
        for name in names:
            assert getattr(penstock, name) is getattr(importlib.import_module(module), name)
    assert dir(penstock) == penstock.__all__
    assert not hasattr(penstock, "nonsense")


def test_importing_the_package_loads_no_event_loop() -> None:
    heavy = "('asyncio', 'msgspec', 'sqlite3')"
    code = f"import sys, penstock; print([name for name in {heavy} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
