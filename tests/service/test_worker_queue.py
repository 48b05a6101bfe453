"""The queue of a model's workers: fair, bounded, and nothing is lost in it."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from service.parsers import ParseInput
from service.workers.queue import FairQueue, PendingRequest, PendingText
from syntax.errors import DeadlineError, OverloadedError, SpecError, WorkerDiedError

QUANTUM = 50
sizes = st.lists(st.integers(1, 3 * QUANTUM), min_size=1, max_size=8)


def request(words: list[int], deadline: float = 30.0) -> PendingRequest:
    items = [text(size) for size in words]
    return PendingRequest(items, [item.words for item in items], 0.0, deadline)


def text(words: int) -> ParseInput:
    return ParseInput("pretokenized", tokens=("word",) * words)


def take(queue: FairQueue, budget: int = QUANTUM) -> list[PendingText]:
    """A batch from a queue that is not empty: its coroutine ends without waiting."""
    try:
        queue.take(budget).send(None)
    except StopIteration as ended:
        return ended.value
    raise AssertionError("the queue made us wait")


class Twin:
    """The same turns in plain lists, every sum reckoned anew."""

    def __init__(self) -> None:
        self.ring: list[tuple[PendingRequest, list[PendingText]]] = []
        self.credit: dict[PendingRequest, int] = {}

    @property
    def waiting(self) -> list[PendingText]:
        return [job for _, jobs in self.ring for job in jobs]

    @property
    def words(self) -> int:
        return sum(job.words for job in self.waiting)

    def put(self, given: PendingRequest) -> None:
        self.credit[given] = QUANTUM
        self.ring.append((given, list(given.texts)))

    def put_back(self, job: PendingText) -> None:
        self.credit[job.request] += job.words
        for owner, jobs in self.ring:
            if owner is job.request:
                jobs.insert(0, job)
                return
        self.ring.insert(0, (job.request, [job]))

    def withdraw(self, given: PendingRequest) -> None:
        self.ring = [(owner, jobs) for owner, jobs in self.ring if owner is not given]

    def take(self, budget: float) -> list[PendingText]:
        batch: list[PendingText] = []
        while self.ring and budget > 0:
            owner, jobs = self.ring[0]
            if self.credit[owner] <= 0:
                self.credit[owner] += QUANTUM
                self.ring.append(self.ring.pop(0))
            elif batch and (jobs[0].alone or batch[0].alone):
                break
            else:
                batch.append(jobs.pop(0))
                budget -= batch[-1].words
                self.credit[owner] -= batch[-1].words
                self.ring = [(o, j) for o, j in self.ring if j]
        return batch


class Queueing(RuleBasedStateMachine):
    """Whatever comes, goes, dies and is withdrawn: queue and twin give the same batches."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = FairQueue(capacity=20 * QUANTUM, workers=2, quantum=QUANTUM)
        self.twin = Twin()
        self.requests: list[PendingRequest] = []
        self.in_hand: list[list[PendingText]] = []
        self.seen: list[PendingText] = []
        self.done: Counter[PendingText] = Counter()

    @rule(words=sizes)
    def arrive(self, words: list[int]) -> None:
        given = request(words)
        if sum(words) + self.twin.words > 20 * QUANTUM:
            with pytest.raises((OverloadedError, SpecError)):
                self.queue.put(given)
            return
        self.queue.put(given)
        self.twin.put(given)
        self.requests.append(given)

    @precondition(lambda self: self.twin.words)
    @rule(budget=st.integers(1, 4 * QUANTUM))
    def hand_out(self, budget: int) -> None:
        expected = self.twin.take(min(budget, self.twin.words / 2))
        batch = take(self.queue, budget)
        assert batch == expected
        self.in_hand.append(batch)
        self.seen += [job for job in batch if job not in self.seen]

    @precondition(lambda self: self.in_hand)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        self.done.update(self.in_hand.pop(data.draw(st.integers(0, len(self.in_hand) - 1))))

    @precondition(lambda self: self.in_hand)
    @rule(data=st.data(), alone=st.booleans())
    def die(self, data: st.DataObject, alone: bool) -> None:
        """A worker answers some of its texts, and dies."""
        batch = self.in_hand.pop(data.draw(st.integers(0, len(self.in_hand) - 1)))
        answered = data.draw(st.integers(0, len(batch) - 1))
        self.done.update(batch[:answered])
        again = [job for job in batch[answered:] if job.is_open]
        for job in again:
            job.alone = alone
        self.queue.put_back(again)
        for job in reversed(again):
            self.twin.put_back(job)

    @precondition(lambda self: self.requests)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        given = data.draw(st.sampled_from(self.requests))
        self.queue.withdraw(given)
        self.twin.withdraw(given)

    @invariant()
    def sums_are_right(self) -> None:
        assert self.queue.words == self.twin.words
        assert self.queue.texts == len(self.queue) == len(self.twin.waiting)

    @invariant()
    def nothing_is_lost_or_doubled(self) -> None:
        held = [job for batch in self.in_hand for job in batch]
        places = Counter(self.twin.waiting) + Counter(held) + self.done
        assert max(places.values(), default=1) == 1
        for each in self.requests:
            if not each.is_closed:
                assert all(places[job] == 1 for job in each.texts)

    @invariant()
    def texts_of_a_request_are_first_handed_out_in_order(self) -> None:
        for each in self.requests:
            positions = [job.position for job in self.seen if job.request is each]
            assert positions == sorted(positions)


TestQueueing = Queueing.TestCase
TestQueueing.settings = settings(max_examples=80, stateful_step_count=40)


@given(st.lists(sizes, min_size=1, max_size=12), st.lists(st.integers(0, 3), max_size=40))
def test_fair_queue_serves_a_new_request_within_one_round(
    arrivals: list[list[int]], takes: list[int]
) -> None:
    queue = FairQueue(capacity=10**9, workers=1, quantum=QUANTUM)
    longest = max(map(max, arrivals))
    coming = [request(words) for words in arrivals]
    served: dict[PendingRequest, Counter[PendingRequest]] = {}
    while coming or queue:
        if coming:
            served[coming[-1]] = Counter()
            queue.put(coming.pop())
        for _ in range(takes.pop() if takes else 1):
            for job in take(queue, QUANTUM // 2) if queue else []:
                served.pop(job.request, None)
                for others in served.values():
                    others[job.request] += job.words
        assert all(words < QUANTUM + longest for each in served.values() for words in each.values())


def test_full_queue_sets_retry_after() -> None:
    queue = FairQueue(capacity=1_000, workers=2, quantum=QUANTUM)
    queue.learn(words=100, seconds=2.0)
    queue.put(request([900]))
    with pytest.raises(OverloadedError) as caught:
        queue.put(request([60, 60]))
    # 900 words at 50 words a second, by two workers.
    assert caught.value.detail == {"retry_after": 9, "queued": 900, "limit": 1_000}
    assert queue.texts == 1


def test_request_over_the_capacity_is_a_spec_error() -> None:
    queue = FairQueue(capacity=1_000, workers=2, quantum=QUANTUM)
    with pytest.raises(SpecError, match="at most 1000 can wait"):
        queue.put(request([600, 600]))
    assert not queue


def test_an_expired_request_is_answered_and_leaves_the_queue() -> None:
    queue = FairQueue(capacity=1_000, workers=1, quantum=QUANTUM)
    late = request([10, 10, 10], deadline=5.0)
    queue.put(late)
    (parsed,) = take(queue, budget=1)
    parsed.settle(WorkerDiedError("first"))
    queue.expire(late)
    queue.expire(late)
    outcomes = dict(late.answers.get_nowait() for _ in range(3))
    assert late.answers.empty()
    assert isinstance(outcomes[0], WorkerDiedError)
    assert isinstance(outcomes[1], DeadlineError)
    assert outcomes[2].detail == {"seconds": 5.0}
    assert queue.words == queue.texts == 0


async def test_a_worker_waits_for_a_full_batch_but_not_for_ever() -> None:
    queue = FairQueue(capacity=1_000, workers=1, quantum=QUANTUM)
    taking = asyncio.create_task(queue.take(20, wait=30.0))
    for _ in range(4):
        queue.put(request([5]))
        await asyncio.sleep(0)
    assert len(await taking) == 4
    queue.put(request([5]))
    assert len(await queue.take(20, wait=0.01)) == 1


def test_a_request_that_was_served_is_no_garbage_for_the_collector() -> None:
    """A cycle would live until a pass over all objects, which stops the service for .1 s."""
    queue = FairQueue(capacity=100, workers=1, quantum=QUANTUM)
    served = request([1, 2])
    kept = weakref.ref(served)
    gc.disable()
    try:
        queue.put(served)
        take(queue)
        queue.withdraw(served)
        del served
        assert kept() is None
    finally:
        gc.enable()
