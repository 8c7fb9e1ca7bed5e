"""No module of the contract is left out of this project's own run."""

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from tidemill.testing import contract

HERE = Path(__file__).parent


def has_tests(module: ModuleType) -> bool:
    return any(name.startswith("test_") for name in vars(module))


@pytest.mark.parametrize("name", contract.MODULES)
def test_every_module_has_tests_and_is_run(name: str) -> None:
    assert has_tests(import_module(f"tidemill.testing.contract.{name}"))
    assert (HERE / f"test_{name.rpartition('.')[2]}.py").is_file()


def test_every_file_with_tests_is_named() -> None:
    root = Path(contract.__path__[0])
    files = [path.relative_to(root).with_suffix("") for path in root.rglob("*.py") if path.stem != "__init__"]
    names = [".".join(file.parts) for file in files]
    with_tests = {name for name in names if has_tests(import_module(f"tidemill.testing.contract.{name}"))}
    assert with_tests == set(contract.MODULES)
