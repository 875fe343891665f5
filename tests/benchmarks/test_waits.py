"""The cases of the benchmark of waits."""

from benchmarks.scenarios.waits import Case


def test_operations_of_a_case_are_divided_among_its_projects() -> None:
    durations = Case(operations=20, projects=4, longest=3).durations(0)
    assert [len(of_project) for of_project in durations] == [5, 5, 5, 5]
    all_durations = [seconds for of_project in durations for seconds in of_project]
    assert (min(all_durations), max(all_durations)) == (1, 3)
