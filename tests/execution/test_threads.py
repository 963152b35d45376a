"""Small products are computed in one thread, and others as before."""

from __future__ import annotations

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from dpverify.execution.threads import one_thread


def test_one_thread_while_it_lasts() -> None:
    pools = ThreadpoolController()

    def threads() -> list[int]:
        return [pool["num_threads"] for pool in pools.info()]

    with pools.limit(limits=2):
        before = threads()
        with one_thread():
            assert set(threads()) == {1}
        assert threads() == before
        assert max(before) == 2
