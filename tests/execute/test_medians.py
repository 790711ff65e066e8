import numpy as np

from explorer.execute.medians import between


def test_between_is_what_the_host_takes_where_nothing_is_waited_for():
    # rank 0 works for 1 s at a time with 0.1 s between, and once waits for 5 s; rank 1 begins 3 s late
    start = np.array([0.0, 1.1, 2.2, 8.2, 9.3, 3.0, 4.1, 5.2])
    assert np.isclose(between(start, start + 1, np.array([0, 5, 8])), 0.1)


def test_between_leaves_out_what_has_not_run():
    start = np.array([0.0, 1.2, np.nan])
    assert np.isclose(between(start, start + 1, np.array([0, 3])), 0.2)
    assert between(np.array([0.0]), np.array([1.0]), np.array([0, 1])) == 0
