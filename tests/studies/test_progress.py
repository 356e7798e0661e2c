"""What is said of runs on their way: which, how far, and the time left, counted in work."""

import pytest

from nearkin.config.spec import make_spec
from nearkin.present import Table
from nearkin.runs.store import Store
from nearkin.studies import executors, pace
from nearkin.studies.carry_out import RunsProgress
from nearkin.studies.cells import Cell
from nearkin.studies.runner import Job


class Clock:
    """Time that stands still until it is moved."""

    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(pace.time, "monotonic", clock)
    return clock


def jobs_of(root, works, seeds=(0,)):
    spec = make_spec({"dataset": "glyphs"})
    return [
        Job(Cell((f"margin, fold {n + 1} of {len(works)}",), seeds[n % len(seeds)], spec), Store(root).run(f"{n:012x}"))
        for n in range(len(works))
    ]


def progress_of(root, works, after=0.0, **more):
    jobs = jobs_of(root, works, **more)
    for job, work in zip(jobs, works, strict=True):
        job.work = work
    return jobs, RunsProgress(jobs, 1, after)


def finish(job):
    job.running, job._finished = False, True


@pytest.mark.parametrize(("after", "left"), [(0, "60 s"), (60, "2 min")])
def test_the_time_left_counts_work_not_runs_and_what_comes_after(tmp_path, clock, after, left):
    jobs, progress = progress_of(tmp_path, [30.0, 5.0, 55.0], after)
    assert progress.table().title == "0 of 3 runs done"
    clock.now += 30
    finish(jobs[0])  # 30 of 90 in 30 seconds: a run of three, but 60 (120) seconds are left
    assert progress.table().title == f"1 of 3 runs done; about {left} left"


def test_a_run_is_called_by_its_seed_where_there_are_several(tmp_path):
    jobs, progress = progress_of(tmp_path, [1.0, 1.0])
    finish(jobs[1])
    assert progress.ended() == ["done: margin, fold 2 of 2"]
    assert progress.ended() == []
    jobs, progress = progress_of(tmp_path, [1.0, 1.0], seeds=(0, 1))
    finish(jobs[1])
    assert progress.ended() == ["done: margin, fold 2 of 2 seed 1"]
    assert [column.name for column in progress.table().shown][:2] == ["running", "seed"]


def test_a_log_has_a_line_a_minute_where_nothing_ends(clock, monkeypatch):
    lines = []
    monkeypatch.setattr(executors.Screen, "print", lambda self, line, **looks: lines.append(line))

    class Slow:
        news = ()

        def table(self):
            return Table("runs", ["running"], [["margin, fold 1 of 4"]], "0 of 4 runs done; about 3 min left")

        def ended(self):
            return list(self.news)

    slow = Slow()
    with executors.following() as watch:
        for seconds, news in ((1, ()), (70, ()), (71, ()), (72, ("done: one",)), (130, ()), (133, ())):
            clock.now, slow.news = 1000.0 + seconds, news
            watch(slow)
    said = "0 of 4 runs done; about 3 min left: margin, fold 1 of 4"
    assert lines == [said, "done: one", said]
