"""The queue of requests: shared batches, turns, limits, models and a clean end."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from newfound.serving.batcher import BATCH, CHARACTERS, LONG, Batcher, QueueFullError


class Recorder:
    """A prediction that waits until it may begin, and records its batches."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.batches: list[list[str]] = []
        self.may_begin = threading.Event()

    def __call__(self, texts: Sequence[str]) -> list[str]:
        self.batches.append(list(texts))
        assert self.may_begin.wait(10)
        if "broken" in texts:
            raise RuntimeError("broken")
        return [self.name + text.upper() for text in texts]


def run(scene: Callable[[Batcher], Awaitable[Any]], workers: int = 1, limit: int = 1000) -> Any:
    """Run a scene with a queue, which is closed afterwards."""

    async def play() -> Any:
        batcher = Batcher(asyncio.get_running_loop(), workers=workers, limit=limit)
        try:
            return await scene(batcher)
        finally:
            await asyncio.to_thread(batcher.close)

    return asyncio.run(play())


async def until_taken(predict: Recorder, batches: int = 1) -> None:
    while len(predict.batches) < batches:
        await asyncio.sleep(0.001)


def test_requests_that_arrive_together_share_a_batch() -> None:
    predict = Recorder()

    async def scene(batcher: Batcher) -> list[list[str]]:
        first = batcher.submit(predict, ["a"])
        await until_taken(predict)
        others = [batcher.submit(predict, [text]) for text in "bcd"]
        predict.may_begin.set()
        return await asyncio.gather(first, *others)

    assert run(scene) == [["A"], ["B"], ["C"], ["D"]]
    assert predict.batches == [["a"], ["b", "c", "d"]]


@settings(max_examples=20)
@given(
    sizes=st.lists(st.integers(1, 300), min_size=1, max_size=12),
    workers=st.integers(1, 3),
    models=st.integers(1, 3),
)
def test_every_request_gets_the_answers_of_its_model_in_order(
    sizes: list[int], workers: int, models: int
) -> None:
    predictions = [Recorder(f"{i}:") for i in range(models)]
    for predict in predictions:
        predict.may_begin.set()

    async def scene(batcher: Batcher) -> list[list[str]]:
        return await asyncio.gather(
            *(
                batcher.submit(predictions[i % models], [f"t{i}-{j}" for j in range(size)])
                for i, size in enumerate(sizes)
            )
        )

    found = run(scene, workers, sum(sizes))
    for i, size in enumerate(sizes):
        assert found[i] == [f"{i % models}:T{i}-{j}" for j in range(size)]
    for predict in predictions:
        assert all(len(batch) <= BATCH for batch in predict.batches)


def test_a_long_request_lets_short_ones_through() -> None:
    predict = Recorder()

    async def scene(batcher: Batcher) -> None:
        first = batcher.submit(predict, ["first"])
        await until_taken(predict)
        long = batcher.submit(predict, ["long"] * 3 * BATCH)
        short = batcher.submit(predict, ["short"])
        predict.may_begin.set()
        await asyncio.gather(first, long, short)

    run(scene)
    assert predict.batches[1].count("short") == 1
    assert predict.batches[1].count("long") == BATCH - 1


@pytest.mark.parametrize("workers", [1, 2])
def test_long_texts_are_batches_of_their_own(workers: int) -> None:
    predict = Recorder()
    long = "x" * (LONG + 1)

    async def scene(batcher: Batcher) -> None:
        first = [batcher.submit(predict, ["first"]) for _ in range(workers)]
        await until_taken(predict)
        sent = [batcher.submit(predict, [long]) for _ in range(4)]
        sent += [batcher.submit(predict, [f"short {i}"]) for i in range(3 * BATCH)]
        predict.may_begin.set()
        found = await asyncio.gather(*first, *sent)
        assert [len(answers) for answers in found] == [1] * len(found)

    run(scene, workers)
    with_long = [batch for batch in predict.batches if long in batch]
    assert with_long == [[long]] * 4
    assert all(sum(map(len, batch)) <= CHARACTERS for batch in predict.batches)
    # Short texts take turns with long ones.
    last = max(i for i, batch in enumerate(predict.batches) if "short 0" in batch)
    assert [long] in predict.batches[last + 1 :]


def test_short_texts_do_not_wait_for_long_ones_with_several_workers() -> None:
    long, short = Recorder(), Recorder()
    short.may_begin.set()

    async def scene(batcher: Batcher) -> None:
        waiting = [batcher.submit(long, ["x" * 10_000]) for _ in range(5)]
        await until_taken(long)
        assert await asyncio.wait_for(batcher.submit(short, ["rain"]), 5) == ["RAIN"]
        assert len(long.batches) == 1
        long.may_begin.set()
        await asyncio.gather(*waiting)

    run(scene, 2)


def test_a_batch_has_a_limited_number_of_characters() -> None:
    predict = Recorder()
    predict.may_begin.set()

    async def scene(batcher: Batcher) -> None:
        await batcher.submit(predict, ["x" * LONG] * 100)

    run(scene)
    assert all(sum(map(len, batch)) <= CHARACTERS for batch in predict.batches)
    assert sum(map(len, predict.batches)) == 100


def test_a_cancelled_request_leaves_the_queue_at_once() -> None:
    predict = Recorder()

    async def scene(batcher: Batcher) -> None:
        first = batcher.submit(predict, ["first"])
        await until_taken(predict)
        gone = batcher.submit(predict, ["gone"] * 500 + ["x" * 10_000] * 500)
        with pytest.raises(QueueFullError):
            batcher.submit(predict, ["late"])
        gone.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert batcher.waiting == 0
        late = batcher.submit(predict, ["late"])
        predict.may_begin.set()
        await asyncio.gather(first, late)
        assert batcher.waiting == 0

    run(scene, limit=1000)
    assert predict.batches == [["first"], ["late"]]


def test_closing_leaves_a_prediction_that_takes_too_long() -> None:
    predict = Recorder()

    async def scene() -> None:
        batcher = Batcher(asyncio.get_running_loop(), workers=1, limit=10)
        future = batcher.submit(predict, ["slow"])
        await until_taken(predict)
        assert not await asyncio.to_thread(batcher.close, 0.1)
        predict.may_begin.set()
        assert await future == ["SLOW"]
        assert await asyncio.to_thread(batcher.close, 10)

    asyncio.run(scene())


def test_workers_share_what_waits() -> None:
    predict = Recorder()

    async def scene(batcher: Batcher) -> None:
        future = batcher.submit(predict, ["text"] * 100)
        await until_taken(predict, 2)
        assert len(predict.batches[0]) == 50
        predict.may_begin.set()
        await future

    run(scene, workers=2)


def test_a_batch_holds_texts_of_similar_length() -> None:
    predict = Recorder()

    async def scene(batcher: Batcher) -> None:
        first = [batcher.submit(predict, ["first"]) for _ in range(2)]
        await until_taken(predict, 2)
        texts = ["long text", "a", "longer text", "b", "the longest text", "c"]
        others = [batcher.submit(predict, [text]) for text in texts]
        predict.may_begin.set()
        assert await asyncio.gather(*others) == [[text.upper()] for text in texts]
        await asyncio.gather(*first)

    run(scene, workers=2)
    assert sorted(map(sorted, predict.batches[2:])) == [
        ["a", "b", "c"],
        ["long text", "longer text", "the longest text"],
    ]


def test_a_full_queue_refuses_and_recovers() -> None:
    predict = Recorder()

    async def scene(batcher: Batcher) -> None:
        taken = batcher.submit(predict, ["a"])
        await until_taken(predict)
        waiting = batcher.submit(predict, ["b"] * 10)
        with pytest.raises(QueueFullError):
            batcher.submit(predict, ["c"])
        predict.may_begin.set()
        await asyncio.gather(taken, waiting)
        assert batcher.waiting == 0
        assert await batcher.submit(predict, ["c"] * 10) == ["C"] * 10

    run(scene, limit=10)


def test_texts_of_an_abandoned_request_are_not_predicted() -> None:
    predict = Recorder()

    async def scene(batcher: Batcher) -> None:
        taken = batcher.submit(predict, ["a"])
        await until_taken(predict)
        batcher.submit(predict, ["b"] * 5).cancel()
        last = batcher.submit(predict, ["c"])
        predict.may_begin.set()
        await asyncio.gather(taken, last)
        assert batcher.waiting == 0

    run(scene)
    assert predict.batches == [["a"], ["c"]]


def test_an_error_reaches_the_requests_of_its_batch_only() -> None:
    predict = Recorder()

    async def scene(batcher: Batcher) -> None:
        taken = batcher.submit(predict, ["a"])
        await until_taken(predict)
        broken = [batcher.submit(predict, [text]) for text in ("broken", "b")]
        predict.may_begin.set()
        assert await taken == ["A"]
        for future in broken:
            with pytest.raises(RuntimeError, match="broken"):
                await future
        assert await batcher.submit(predict, ["c"]) == ["C"]

    run(scene)


def test_closing_answers_what_waits_and_refuses_the_rest() -> None:
    predict = Recorder()

    async def scene(batcher: Batcher) -> None:
        futures = [batcher.submit(predict, [f"t{i}"] * 50) for i in range(10)]
        closing = asyncio.create_task(asyncio.to_thread(batcher.close))
        await asyncio.sleep(0.01)
        with pytest.raises(QueueFullError):
            batcher.submit(predict, ["late"])
        predict.may_begin.set()
        found = await asyncio.gather(*futures)
        assert found == [[f"T{i}"] * 50 for i in range(10)]
        await closing

    run(scene)


def test_the_time_until_the_queue_is_empty_is_estimated() -> None:
    predict = Recorder()

    async def scene(batcher: Batcher) -> None:
        predict.may_begin.set()
        await batcher.submit(predict, ["a"])
        predict.may_begin.clear()
        futures = [batcher.submit(predict, ["b"] * BATCH)]
        await until_taken(predict, 2)
        assert batcher.waiting == 0 and batcher.seconds_to_empty == 0  # noqa: PT018
        futures.append(batcher.submit(predict, ["c"] * BATCH))
        assert 0 < batcher.seconds_to_empty < 100
        predict.may_begin.set()
        await asyncio.gather(*futures)

    run(scene)
