"""The scheduler: as many tasks at a time as there are workers, each once; killed ones again; stopped in order."""

import itertools
from pathlib import Path

import pytest

from nearkin.studies.scheduler import TRIES, Executor, Failure, Task, Working, schedule


class Toy(Working):
    """A task that ends at a tick of the executor's clock."""

    def __init__(self, executor, task, worker, ends):
        self.executor, self.task, self.worker, self.ends, self.stopped = executor, task, worker, ends, False

    @property
    def alive(self):
        return not self.stopped and self.executor.tick < self.ends

    def ended(self):
        return self.executor.failures.pop(0) if self.executor.failures else None

    def stop(self):
        self.stopped = True


class Clock(Executor):
    """Task number i takes 1 + i % 3 ticks; `failures` are handed out to what ends first."""

    def __init__(self, workers, failures=()):
        super().__init__(workers)
        self.tick, self.started, self.most, self.failures = 0, [], 0, list(failures)

    def start(self, task, worker):
        alive = [toy for toy in self.started if toy.alive]
        assert worker not in {toy.worker for toy in alive}
        self.started.append(Toy(self, task, worker, self.tick + 1 + len(self.started) % 3))
        self.most = max(self.most, len(alive) + 1)
        return self.started[-1]

    def wait(self, working, seconds):
        self.tick += 1

    def close(self): ...


def tasks(count):
    return [Task({}, Path(str(number))) for number in range(count)]


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 7])
def test_every_task_once_and_no_more_at_a_time_than_workers(workers, count):
    executor, wanted = Clock(workers), tasks(count)
    ended = [over.task for look in schedule(executor, wanted) for over in look.ended]
    assert sorted(task.path.name for task in ended) == [task.path.name for task in wanted]
    assert [toy.task for toy in executor.started] == wanted  # in their order
    assert executor.most == min(workers, count)


def test_the_next_task_is_asked_for_after_the_caller_has_seen_what_ended():
    seen = []

    def proposed():
        for number in range(6):
            assert len(seen) >= number - 1  # with two workers one may be under way
            yield Task({}, Path(str(number)))

    for look in schedule(Clock(2), proposed()):
        seen += look.ended
    assert len(seen) == 6


def test_where_there_is_no_task_now_it_is_asked_again():
    executor, answers = Clock(2), itertools.chain([None, None, *tasks(1), None], tasks(2))
    ended = [over for look in schedule(executor, answers, poll=0) for over in look.ended]
    assert len(ended) == 3


def test_what_is_killed_is_begun_again_and_other_failures_are_not():
    killed, wrong = Failure("exit code -9", passing=True, killed=True), Failure("the loss became nan")
    executor = Clock(1, [killed, None, wrong, *[killed] * TRIES])
    ended = [over for look in schedule(executor, tasks(3)) for over in look.ended]
    assert [over.failure for over in ended] == [None, wrong, killed]
    assert [toy.task.path.name for toy in executor.started] == ["0", "0", "1", *["2"] * TRIES]


@pytest.mark.parametrize("how", ["stop", "error", "left"])
def test_what_is_under_way_is_stopped(how):
    executor, looks = Clock(3), 0
    run = schedule(executor, tasks(30), stop=lambda: how == "stop" and looks == 3)
    try:
        for _ in run:
            looks += 1
            if how == "error" and looks == 3:
                raise KeyboardInterrupt
            if how == "left" and looks == 3:
                break
    except KeyboardInterrupt:
        pass
    run.close()  # what leaving the loop does
    assert 0 < len(executor.started) < 30
    assert all(toy.stopped or not toy.alive for toy in executor.started)
    assert any(toy.stopped for toy in executor.started)
