"""What all tests share."""

from hypothesis import settings

# compiled loops make the first example slow and a shared machine any of them: no deadline; the same cases every time
settings.register_profile("explorer", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("explorer")

pytest_plugins = ["tests.browser.fixtures"]  # of the browser tests and of the benchmarks: a session has one browser
