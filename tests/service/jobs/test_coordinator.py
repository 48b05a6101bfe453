"""One shard on a real scheduler without workers: the test says what its task would say."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from threading import Event
from typing import Any

import pytest
from distributed import Client, LocalCluster

from service.jobs.dask.cluster import Cluster
from service.jobs.dask.coordinator import ShardThread
from service.jobs.dask.task import Message, What
from service.jobs.database import open_database, sqlite_url
from service.jobs.ledger import JobLedger
from service.jobs.queue import Claims, JobQueue
from service.jobs.records import Counts, Shard
from service.jobs.staging import StagingArea
from service.settings import Settings

from .board import REQUEST
from .servers import wait_for

LEASE = 60.0
SHORT = 2.0
FIRST, SECOND = "tcp://first:1", "tcp://second:1"


@dataclass
class Scene:
    """A shard that was sent to a scheduler without workers."""

    ledger: JobLedger
    claims: Claims
    thread: ShardThread
    client: Client
    topic: str
    run: str = ""

    @property
    def tasks(self) -> list[str]:
        """The tasks that the scheduler has."""
        return list(self.client.cluster.scheduler.tasks)

    def say(self, what: What, worker: str = FIRST, **facts: Any) -> None:
        self.client.log_event(self.topic, asdict(Message(self.run, what, worker, facts=facts)))

    def ended(self) -> Shard | None:
        """The shard as it is claimed next; none if it is settled."""
        self.thread.join()
        wait_for(lambda: not self.tasks)
        return self.claims.claim()


@pytest.fixture
def scene(
    make_settings: Callable[..., Settings], request: pytest.FixtureRequest
) -> Iterator[Scene]:
    lease = getattr(request, "param", LEASE)
    with (
        LocalCluster(n_workers=0, processes=False, protocol="tcp", dashboard_address=":0") as local,
        Client(local, set_as_default=False) as client,
    ):
        settings = make_settings(dask_scheduler=local.scheduler_address)
        engine = open_database(sqlite_url(settings.state_dir / "jobs.sqlite"))
        staging = StagingArea.of(settings)
        upload = staging.begin("job", 10)
        upload.add(2, "0" * 32, "{}", 2)
        upload.finish()
        upload.close()
        ledger = JobLedger(engine)
        ledger.add("job", REQUEST, examples=1, shard_count=1)
        queue = JobQueue(engine, lease_seconds=lease, max_tries=8)
        with Cluster(settings) as cluster, Claims("w", queue, Event()) as claims:
            shard = claims.claim()
            assert shard is not None
            thread = ShardThread(shard, claims, staging, cluster)
            scene = Scene(ledger, claims, thread, client, cluster.facts.topic)
            thread.start()
            wait_for(lambda: len(scene.tasks) == 1)
            (scene.run,) = scene.tasks
            yield scene
            thread.give_back()
            thread.join()
        engine.dispose()


def test_a_task_that_is_over_settles_its_shard(scene: Scene) -> None:
    counts = Counts(examples=1, stored=1, parsed=2)
    scene.say("begin")
    scene.say("announce", plan=counts.to_json())
    scene.say("over", counts=counts.to_json())
    assert scene.ended() is None
    assert (scene.ledger.get("job").state, scene.ledger.get("job").counts) == ("done", counts)


def test_a_second_start_means_that_the_first_worker_died(scene: Scene) -> None:
    scene.say("begin")
    scene.say("watch", keys=["a" * 32])
    scene.say("begin", SECOND)
    again = scene.ended()
    assert again is not None
    assert again.tries == 2


@pytest.mark.slow
@pytest.mark.parametrize("scene", [SHORT], indirect=True)
def test_a_shard_waits_for_its_turn_longer_than_a_lease_and_a_silent_task_does_not(
    scene: Scene,
) -> None:
    time.sleep(2 * SHORT)
    assert scene.thread.is_alive()
    scene.say("begin")
    again = scene.ended()
    assert again is not None
    assert again.tries == 2


def test_a_task_that_its_worker_stopped_costs_no_try(scene: Scene) -> None:
    scene.say("begin")
    scene.say("over")
    again = scene.ended()
    assert again is not None
    assert again.tries == 1


def test_a_cancelled_shard_is_held_until_its_task_is_over(scene: Scene) -> None:
    scene.say("begin")
    scene.ledger.cancel("job")
    wait_for(lambda: not scene.tasks)
    assert scene.thread.is_alive()
    assert scene.ledger.needing_input() == {"job"}
    scene.say("over")
    scene.thread.join()
    assert scene.ledger.needing_input() == set()
