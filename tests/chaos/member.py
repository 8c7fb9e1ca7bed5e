"""`tidemill worker` as a member of a run: its engine is opened through `recording`, and the run's bug is
planted. Everything else is the program that users start."""

import os
import sys
from pathlib import Path

from tests.chaos import clock, deploy, plants
from tests.chaos.history import Recorder
from tests.chaos.recording import connect_recorded
from tests.chaos.swap import swap
from tests.chaos.weather import Weather
from tidemill.cli import main
from tidemill.worker.member import supervisor

if __name__ == "__main__":
    folder, who = Path(os.environ["CHAOS_FOLDER"]), os.environ["CHAOS_WHO"]
    weather = Weather(folder / f"{who}.weather")
    swap(supervisor, "connect", connect_recorded(Recorder(folder, who), weather))
    clock.shift_from_environment()
    plants.plant_from_environment()
    deploy.upgrade_from_environment()
    sys.argv = ["tidemill", "worker", *sys.argv[1:]]
    main(prog_name="tidemill")
