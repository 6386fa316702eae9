"""The worker's loop in Kafka: the only module that knows Faust, and what of it can be trusted.

Faust fetches, keeps the membership of the group, and commits offsets. Those offsets are a hint: after every rebalance
they are set to what the ledgers hold, before anything is read. A batch is acknowledged in the order of its partition,
and only once it is finished; where anything is wrong with that, the process ends and is started again.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import faust
from aiokafka.errors import IllegalStateError
from faust.types import TP
from mode import CrashingSupervisor

from index.errors import BrokerUnavailable, GistreamError, StoreError, WriterFenced

from .connection import Connection
from .position import NOTHING
from .share import Role, Share
from .trouble import pause
from .watchdog import Watchdog
from .window import Entry
from .wire import Record

MOST_AT_ONCE: Final = 512
WITHIN_SECONDS: Final = 0.05
"""How long a batch waits for more."""
SETTLE_SECONDS: Final = 0.05
"""Between two looks at what may be acknowledged."""
END_SECONDS: Final = 10.0
"""What the client of Kafka may take to end."""
LOOK_SECONDS: Final = 5.0
"""Between two looks at how much is left to read."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pulse:
    """How a worker shows that it lives, and when it is taken for dead."""

    session_seconds: float = 10.0
    """Without a heartbeat for so long, its partitions go to others; a worker that starts again sooner keeps them."""
    rebalance_seconds: float = 30.0
    """In which it lets go of its partitions when it is asked to; one that cannot ends."""
    stalled_seconds: float = 300.0
    """Without progress for so long, though there is something to do, it ends."""


class Worker:
    """One member of a role's consumer group. Run it in a process of its own: where it must stop at once, it exits."""

    def __init__(self, role: Role, connection: Connection, instance: str, folder: Path, pulse: Pulse = Pulse()) -> None:
        """`instance` names this member among those of its group, now and after it was started again. `folder` is for
        Faust, which makes one that stays empty.
        """
        self._role = role
        self._pulse = pulse
        self._share: Share | None = None
        self._paused: set[TP] = set()
        """Partitions of which enough was fetched."""
        self._failure: BaseException | None = None
        self._over = asyncio.Event()
        self._taking_over, self._letting_go = asyncio.Lock(), asyncio.Lock()
        self._revocations = 0
        self._watchdog = Watchdog(pulse.stalled_seconds)
        self._topic = role.topic.topic
        self._app = self._faust(connection, instance, folder)

    @property
    def partitions(self) -> int:
        """How many partitions it was assigned."""
        share = self._share
        return 0 if share is None else len(share.ledgers)

    @property
    def events_under_way(self) -> int:
        """Events that were fetched and are not finished."""
        share = self._share
        return 0 if share is None else len(share.window)

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set, then finish what is under way. Raises what ended the work, StoreError where a
        ledger is outside of what the topic still has, and BrokerUnavailable where there is no broker at the start.
        """
        try:
            await self._app.start()
        except Exception as error:
            raise BrokerUnavailable(f"the worker could not start: {error}", hint="its log says why") from error
        works = (self._settle(), self._watch(), self._broken(), self._told(stop))
        tasks = [asyncio.create_task(work) for work in works]
        try:
            await self._over.wait()
        finally:
            for task in tasks:
                task.cancel()
            try:
                await self._let_go()
            finally:
                await self._ended()
        if self._failure is not None:
            raise self._failure

    async def _ended(self) -> None:
        """Have Faust end its threads: one that still runs when the process ends takes it down with a core dump.

        Without a broker it would try for long, and the process could not end before; all that counts is done by now.
        """

        async def end() -> None:
            if self._failure is None:
                await self._app.consumer.commit()
            await self._app.stop()

        try:
            # Not wait_for: it waits for what it has cancelled.
            done, _ = await asyncio.wait([asyncio.create_task(end())], timeout=END_SECONDS)
            if not done:
                _log.warning("the client of Kafka does not end; the process ends without it, and nothing is lost")
                if self._failure is not None:
                    _log.error("%s", self._failure)
                os._exit(0 if self._failure is None else 1)
            await done.pop()
        except Exception as error:
            _log.warning("the client of Kafka does not end: %r", error)

    def _faust(self, connection: Connection, instance: str, folder: Path) -> faust.App:
        seconds = self._pulse.session_seconds
        app = faust.App(
            connection.group(self._role.name),
            broker=[f"aiokafka://{address}" for address in connection.bootstrap.split(",")],
            broker_credentials=_credentials(connection),
            store="memory://",
            datadir=folder,
            agent_supervisor=CrashingSupervisor,
            consumer_group_instance_id=instance,
            consumer_auto_offset_reset="earliest",
            broker_session_timeout=seconds,
            broker_heartbeat_interval=seconds / 3,
            broker_rebalance_timeout=max(self._pulse.rebalance_seconds, seconds) + 5,
            broker_commit_interval=1.0,
            broker_max_poll_records=MOST_AT_ONCE,
            stream_buffer_maxsize=MOST_AT_ONCE,
            stream_wait_empty=False,
            topic_disable_leader=True,
            topic_allow_declare=False,
            table_standby_replicas=0,
            web_enabled=False,
            worker_redirect_stdouts=False,
        )
        topic = app.topic(self._topic, key_serializer="raw", value_serializer="raw")

        async def read(stream: Any) -> None:
            async for events in stream.noack_take(MOST_AT_ONCE, within=WITHIN_SECONDS):
                await self._guarded(self._take(events))

        app.agent(topic, name=self._role.name)(read)
        app.on_partitions_revoked.connect(self._revoked, weak=False)
        app.on_rebalance_complete.connect(self._assigned, weak=False)
        return app

    async def _take(self, events: Sequence[Any]) -> None:
        """Put what was fetched into the window, and have no more fetched of partitions that are full."""
        share, failures = self._share, 0
        generation = self._app.consumer_generation_id
        events = [event for event in events if event.message.generation_id == generation]
        while share is not None and share is self._share:
            try:
                await asyncio.to_thread(_take_all, share, events)
                break
            except GistreamError as error:
                if not error.recoverable:
                    raise
                seconds = pause(failures)
                _log.warning("%d records are taken again in %.1f s: %s", len(events), seconds, error)
                await asyncio.sleep(seconds)
                failures += 1
        if share is not None and share is self._share and (full := share.window.full()):
            self._paused |= self._tps(full)
            self._app.consumer.pause_partitions(self._paused)

    async def _settle(self) -> None:
        """Acknowledge what is finished, and end where the work has ended."""

        async def once() -> None:
            if (share := self._share) is None:
                return
            done = await asyncio.to_thread(share.settle)
            if share is self._share:
                self._acknowledge(done)
                if roomy := self._paused & self._tps(share.window.roomy()):
                    self._paused -= roomy
                    self._app.consumer.resume_partitions(roomy)

        while not self._over.is_set():
            await self._guarded(once())
            await asyncio.sleep(SETTLE_SECONDS)

    def _acknowledge(self, done: Mapping[int, Sequence[Entry]]) -> None:
        for entries in done.values():
            for entry in entries:
                entry.handle.ack()
            if entries:
                self._watchdog.progress()

    async def _watch(self) -> None:
        """End where nothing goes on although there is something to do."""
        while not self._over.is_set():
            await asyncio.sleep(LOOK_SECONDS)
            share = self._share
            if share is not None and (share.work.is_held_up or not await self._is_behind(share)):
                self._watchdog.progress()
            elif (stalled := self._watchdog.verdict()) is not None:
                self._fail(stalled)

    async def _is_behind(self, share: Share) -> bool:
        """Whether there is something to do; so it is taken where nobody answers, or the client does not."""
        if len(share.window) > 0:
            return True
        try:
            asked = self._app.consumer.highwaters(*self._tps(share.ledgers))
            ends = await asyncio.wait_for(asked, 2 * LOOK_SECONDS)
        except Exception as error:
            _log.warning("how much is left to read cannot be told: %r", error)
            return True
        return any(end is not None and end - 1 > share.last(tp.partition) for tp, end in ends.items())

    async def _broken(self) -> None:
        """End where a part of Faust has ended: it stops all of them then, and tells nobody."""
        await self._app.wait()
        reason = self._app.crash_reason
        error = BrokerUnavailable(f"the client of Kafka ended: {reason!r}", hint="its log says why; start again")
        error.__cause__ = reason
        self._fail(error)

    async def _revoked(self, *_: Any, **__: Any) -> None:
        """Stop writing before anybody else may be assigned our partitions."""
        self._revocations += 1
        await self._guarded(self._let_go())

    async def _let_go(self) -> None:
        """Close the share; who comes while another does it waits for the end of that."""
        async with self._letting_go:
            share, self._share = self._share, None
            if share is None:
                return
            try:
                done = await asyncio.wait_for(asyncio.to_thread(share.close), self._pulse.rebalance_seconds)
            except TimeoutError:
                _log.critical("what was under way did not end within %.0f s", self._pulse.rebalance_seconds)
                # Nothing short of this keeps its threads from writing on.
                os._exit(1)
            except WriterFenced as fenced:
                # Whoever has it by now reads again what was not noted.
                _log.info("%s", fenced)
                return
            self._acknowledge(done)

    async def _assigned(self, *_: Any, **__: Any) -> None:
        """Take over what was assigned; where the group has moved on meanwhile, the next assignment comes at once."""
        try:
            async with self._taking_over:
                await self._let_go()
                self._paused.clear()
                # One that is ending would take over what it is just letting go of.
                if not self._over.is_set() and not await self._take_over():
                    _log.info("the group of the %s workers moved on while partitions were taken over", self._role.name)
        except Exception as error:
            self._fail(error)
            raise

    async def _take_over(self) -> bool:
        """Have what was assigned read from where its ledgers are; False where it is no longer ours.

        Faust goes to the committed offsets after this, so those are set; aiokafka leaves out an offset of 0. While
        there is no share, all that is read is dropped: it comes again.
        """
        consumer: Any = self._app.consumer
        revocations = self._revocations
        assigned = sorted(tp.partition for tp in consumer.assignment() if tp.topic == self._topic)
        share = await asyncio.to_thread(Share, self._role, assigned)
        try:
            wanted = await self._wanted(share)
            if wanted and not await consumer._commit(wanted):
                return False
            for tp, offset in wanted.items():
                if offset == 0:
                    await consumer.seek(tp, 0)
        except IllegalStateError:
            return False
        if revocations != self._revocations or self._over.is_set():
            return False
        share.start()
        self._share = share
        self._watchdog.progress()
        _log.info("%s works on partitions %s", self._role.name, assigned)
        return True

    async def _wanted(self, share: Share) -> dict[TP, int]:
        """By partition the next offset to read. Raises StoreError where the topic does not have it."""
        tps = {TP(self._topic, partition): ledger for partition, ledger in share.ledgers.items()}
        if not tps:
            return {}
        consumer = self._app.consumer
        first, end = await consumer.earliest_offsets(*tps), await consumer.highwaters(*tps)
        wanted = {}
        for tp, ledger in tps.items():
            wanted[tp] = first[tp] if ledger.position == NOTHING else ledger.position + 1
            if not first[tp] <= wanted[tp] <= end[tp]:
                raise StoreError(
                    f"partition {tp.partition} of {tp.topic} has offsets {first[tp]} to {end[tp]}, and {wanted[tp]} "
                    "is next to be read",
                    hint="records were deleted before they were read, or the topic lost its end; see `gistream topics "
                    "check`, and go on with `gistream worker --from-start`, which skips what is indexed already",
                )
        return wanted

    def _tps(self, partitions: Iterable[int]) -> set[TP]:
        return {TP(self._topic, partition) for partition in partitions}

    async def _told(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._over.set()

    async def _guarded(self, work: Awaitable[object]) -> None:
        """Await `work`; where it fails, the worker is over."""
        try:
            await work
        except Exception as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if self._failure is None:
            self._failure = error
        self._over.set()


def _take_all(share: Share, events: Sequence[Any]) -> None:
    for event in events:
        message = event.message
        share.take(
            Record(
                message.partition,
                message.offset,
                round(message.timestamp * 1000),
                message.key,
                message.value,
                # Others may write headers without a value; ours have one.
                {name: value for name, value in message.headers or () if value is not None},
            ),
            event,
        )


def _credentials(connection: Connection) -> Any:
    context = connection.ssl_context()
    if connection.has_login:
        return faust.SASLCredentials(
            username=connection.username,
            password=connection.password,
            mechanism=connection.mechanism,
            ssl_context=context,
        )
    return None if context is None else faust.SSLCredentials(context)
