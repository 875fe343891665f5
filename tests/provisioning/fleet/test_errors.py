"""The error of a fleet shows the first problems, and has all of them."""

import copy
import pickle

from neonctl_async.provisioning.fleet import FleetError


def test_message_shows_five_problems_and_the_number_of_others() -> None:
    error = FleetError([f"problem {n}" for n in range(7)])
    assert str(error) == "problem 0; problem 1; problem 2; problem 3; problem 4; and 2 more"
    assert len(error.problems) == 7
    assert str(FleetError(["one"])) == "one"


def test_error_can_be_pickled_and_copied() -> None:
    error = FleetError(["one", "two"])
    for other in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert (str(other), other.problems) == ("one; two", ("one", "two"))
