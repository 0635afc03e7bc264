"""How long the names of a list serve its further pages."""

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_lancens.identifiers import NamespaceId
from airflow_provider_lancens.namespace.operations import recent_listings
from airflow_provider_lancens.namespace.operations.recent_listings import ListingKey, RecentListings
from airflow_provider_lancens.namespace.paging import Page, PageRequest

NAMES = [f"t_{number:06}" for number in range(2000)]


class Server:
    """Lists its names, and takes its time."""

    def __init__(self, clock: "Clock", names: Sequence[str] = NAMES, seconds: float = 2.0) -> None:
        self.clock = clock
        self.names = names
        self.seconds = seconds
        self.lists = 0

    def read(self) -> Sequence[str]:
        self.lists += 1
        self.clock.now += self.seconds
        return self.names


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    clock = Clock()
    monkeypatch.setattr(recent_listings, "time", clock)
    return clock


def key(name: str = "db") -> ListingKey:
    return ListingKey("tables", NamespaceId.of([name]))


def test_a_further_page_takes_the_names_of_the_first(clock: Clock) -> None:
    server, listings = Server(clock), RecentListings()
    listings.page(key(), PageRequest(None, 10), server.read)
    assert listings.page(key(), PageRequest(NAMES[9], 10), server.read).names == NAMES[10:20]
    assert server.lists == 1


def test_a_first_page_and_a_whole_list_are_always_read(clock: Clock) -> None:
    server, listings = Server(clock), RecentListings()
    for _ in range(2):
        listings.page(key(), PageRequest(None, 10), server.read)
        listings.page(key(), PageRequest(), server.read)
    assert server.lists == 4


def test_names_are_kept_ten_times_as_long_as_it_took_to_list_them(clock: Clock) -> None:
    server, listings = Server(clock, seconds=2.0), RecentListings()
    listings.page(key(), PageRequest(None, 10), server.read)
    clock.now += 19.9
    listings.page(key(), PageRequest(NAMES[9], 10), server.read)
    assert server.lists == 1
    clock.now += 0.2
    listings.page(key(), PageRequest(NAMES[19], 10), server.read)
    assert server.lists == 2


def test_names_are_kept_five_minutes_at_most(clock: Clock) -> None:
    server, listings = Server(clock, seconds=100.0), RecentListings()
    listings.page(key(), PageRequest(None, 10), server.read)
    clock.now += 300.1
    listings.page(key(), PageRequest(NAMES[9], 10), server.read)
    assert server.lists == 2


def test_a_short_list_is_read_for_each_page(clock: Clock) -> None:
    server, listings = Server(clock, NAMES[:999]), RecentListings()
    listings.page(key(), PageRequest(None, 10), server.read)
    listings.page(key(), PageRequest(NAMES[9], 10), server.read)
    assert server.lists == 2


def test_no_names_are_kept_after_the_last_page_nor_of_more_than_four_lists(clock: Clock) -> None:
    server, listings = Server(clock, seconds=10), RecentListings()
    listings.page(key(), PageRequest(None, 1999), server.read)
    listings.page(key(), PageRequest(NAMES[1998], 10), server.read)
    assert not listings._listings
    for number in range(5):
        listings.page(key(f"db_{number}"), PageRequest(None, 10), server.read)
    assert len(listings._listings) == 4
    listings.page(key("db_0"), PageRequest(NAMES[9], 10), server.read)
    assert server.lists == 7


@given(st.lists(st.sets(st.sampled_from(NAMES[:40]), max_size=40), min_size=2, max_size=8), st.integers(1, 9))
def test_a_table_that_stays_is_listed_once_whatever_comes_and_goes_and_expires(
    states: list[set[str]], limit: int
) -> None:
    clock, seen = Clock(), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recent_listings, "time", clock)
        patch.setattr(recent_listings, "_SMALLEST", 5)
        listings, request = RecentListings(), PageRequest(None, limit)
        for turn in range(100):
            server = Server(clock, sorted(states[min(turn, len(states) - 1)]), seconds=1.0)
            clock.now += 4.0
            page: Page = listings.page(key(), request, server.read)
            seen += page.names
            if page.token is None:
                break
            request = PageRequest.parse(page.token, limit)
    assert len(seen) == len(set(seen))
    assert seen == sorted(seen)
    assert set.intersection(*states) <= set(seen)
