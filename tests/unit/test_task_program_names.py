"""A task has one name, whether its module is run or imported."""

import subprocess
import sys
from pathlib import Path

import pytest

TASKS = """
from tidemill import Tidemill
app = Tidemill("sqlite://")

@app.task
def f() -> None: ...

if __name__ == "__main__":
    print(f.name)
"""

SHARED = """
from shop.core import app

@app.task
def f() -> None: ...

if __name__ == "__main__":
    import shop.tasks  # again, by its name: no conflict
    print([d.name for d in app.registry.definitions()])
"""

SPAWNS = """
import multiprocessing
from tidemill import Tidemill
app = Tidemill("sqlite://")

@app.task
def f() -> None: ...

def tell() -> None:
    print(f.name, flush=True)

if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=tell)
    child.start()
    child.join()
"""


def run(folder: Path, *arguments: str) -> str:
    ran = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def imported(folder: Path, module: str) -> str:
    return run(folder, "-c", f"from {module} import f; print(f.name)")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """shop/ with __main__, tasks and deep.mod; alone.py; loose/__main__.py, which is no package."""
    for name in ("shop/__main__.py", "shop/tasks.py", "shop/deep/mod.py", "alone.py", "loose/__main__.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TASKS)
    for name in ("shop", "shop/deep"):
        (tmp_path / name / "__init__.py").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "module", "name"),
    [
        (["-m", "shop"], "shop.__main__", "shop.f"),
        (["shop"], "shop.__main__", "shop.f"),
        (["shop/__main__.py"], "shop.__main__", "shop.f"),
        (["-m", "shop.tasks"], "shop.tasks", "shop.tasks.f"),
        (["shop/tasks.py"], "shop.tasks", "shop.tasks.f"),
        (["shop/deep/mod.py"], "shop.deep.mod", "shop.deep.mod.f"),
        (["-m", "shop.deep.mod"], "shop.deep.mod", "shop.deep.mod.f"),
        (["alone.py"], "alone", "alone.f"),
        (["-m", "alone"], "alone", "alone.f"),
    ],
)
def test_a_program_and_its_worker_agree(shop: Path, arguments: list[str], module: str, name: str) -> None:
    assert (run(shop, *arguments), imported(shop, module)) == (name, name)


def test_a_script_may_be_run_from_within_its_package(shop: Path) -> None:
    assert run(shop / "shop" / "deep", "mod.py") == "shop.deep.mod.f"


def test_a_program_without_a_name_says_so_in_its_tasks(shop: Path) -> None:
    assert run(shop, "loose") == "__main__.f"
    assert run(shop, "-c", TASKS) == "__main__.f"


@pytest.mark.parametrize("arguments", [["-m", "shop.tasks"], ["shop/tasks.py"]])
def test_a_program_that_is_also_imported_is_one_task(
    shop: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(shop))
    (shop / "shop" / "core.py").write_text('from tidemill import Tidemill\napp = Tidemill("sqlite://")\n')
    (shop / "shop" / "tasks.py").write_text(SHARED)
    assert run(shop, *arguments) == "['shop.tasks.f']"


def test_processes_that_a_program_spawns_agree_too(shop: Path) -> None:
    (shop / "shop" / "tasks.py").write_text(SPAWNS)
    assert run(shop, "shop/tasks.py") == "shop.tasks.f"
    assert run(shop, "-m", "shop.tasks") == "shop.tasks.f"
