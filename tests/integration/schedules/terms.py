"""Terms of a controller for tests that elect nobody."""


class Trusted:
    """A term that does not end, unless told so."""

    def __init__(self, fence: int = 1) -> None:
        self.fence = fence
        self.over = False

    def trusted(self) -> bool:
        return not self.over
