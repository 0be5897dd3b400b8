"""Lists in pages: every page shows the moment of the first one."""

from __future__ import annotations

import pytest

from pp_hostd.kube.client import ApiClient, Page
from pp_hostd.kube.resources import BARE_METAL_HOSTS, CONFIG_MAPS, Resource
from tests.contract.objects import annotate, annotations_of, config_map, label, names_of, sample
from tests.contract.refusals import BAD_REQUEST, refused

FIVE = ["a", "b", "c", "d", "e"]


async def create_five(client: ApiClient, kind: Resource, namespace: str) -> None:
    for name in reversed(FIVE):
        body = sample(kind, name, labels={"case": namespace, "vowel": str(name in "ae")})
        await client.create(kind, body, namespace=namespace)


async def pages(client: ApiClient, kind: Resource, namespace: str, limit: int) -> list[Page]:
    read = [await client.page(kind, namespace=namespace, limit=limit)]
    while read[-1].continue_token:
        token = read[-1].continue_token
        read.append(await client.page(kind, namespace=namespace, limit=limit, continue_token=token))
    return read


@pytest.mark.parametrize("kind", [CONFIG_MAPS, BARE_METAL_HOSTS], ids=label)
async def test_pages_follow_each_other_in_order(client: ApiClient, kind: Resource, namespace: str) -> None:
    await create_five(client, kind, namespace)
    read = await pages(client, kind, namespace, limit=2)
    assert [names_of(page.items) for page in read] == [["a", "b"], ["c", "d"], ["e"]]
    assert [page.remaining for page in read] == [3, 1, None]
    assert len({page.resource_version for page in read}) == 1


@pytest.mark.parametrize("limit", [5, 6])
async def test_a_list_that_fits_is_one_page(client: ApiClient, limit: int, namespace: str) -> None:
    await create_five(client, CONFIG_MAPS, namespace)
    (page,) = await pages(client, CONFIG_MAPS, namespace, limit)
    assert names_of(page.items) == FIVE and page.remaining is None


@pytest.mark.parametrize("limit", [0, -1])
async def test_no_limit_to_speak_of_gives_everything(client: ApiClient, limit: int, namespace: str) -> None:
    await create_five(client, CONFIG_MAPS, namespace)
    assert names_of((await client.page(CONFIG_MAPS, namespace=namespace, limit=limit)).items) == FIVE


async def test_what_happens_between_pages_is_not_seen_in_them(client: ApiClient, namespace: str) -> None:
    await create_five(client, CONFIG_MAPS, namespace)
    first = await client.page(CONFIG_MAPS, namespace=namespace, limit=2)
    await client.create(CONFIG_MAPS, config_map("bb"), namespace=namespace)
    await client.delete(CONFIG_MAPS, "c", namespace=namespace)
    await client.patch(CONFIG_MAPS, "d", annotate(late="yes"), namespace=namespace)
    rest = await client.page(CONFIG_MAPS, namespace=namespace, limit=5, continue_token=first.continue_token)
    assert names_of(rest.items) == ["c", "d", "e"] and annotations_of(rest.items[1]) == {}
    assert rest.resource_version == first.resource_version
    assert names_of((await client.list(CONFIG_MAPS, namespace=namespace)).items) == ["a", "b", "bb", "d", "e"]


async def test_pages_of_a_selection_do_not_count_what_remains(client: ApiClient, namespace: str) -> None:
    await create_five(client, CONFIG_MAPS, namespace)
    first = await client.page(CONFIG_MAPS, namespace=namespace, label_selector="vowel=True", limit=1)
    assert names_of(first.items) == ["a"] and first.continue_token and first.remaining is None
    last = await client.page(
        CONFIG_MAPS, namespace=namespace, label_selector="vowel=True", limit=1, continue_token=first.continue_token
    )
    assert names_of(last.items) == ["e"] and not last.continue_token


async def test_pages_run_across_namespaces(client: ApiClient, namespace: str) -> None:
    await create_five(client, CONFIG_MAPS, namespace)
    await client.create(CONFIG_MAPS, config_map(namespace, labels={"case": namespace}), namespace="default")
    listing = await client.list(CONFIG_MAPS, label_selector=f"case={namespace}", page_size=2)
    assert names_of(listing.items) == [*FIVE, namespace]


async def test_a_whole_list_is_the_same_in_any_page_size(client: ApiClient, namespace: str) -> None:
    await create_five(client, CONFIG_MAPS, namespace)
    whole = await client.list(CONFIG_MAPS, namespace=namespace)
    for page_size in (1, 2, 3):
        assert await client.list(CONFIG_MAPS, namespace=namespace, page_size=page_size) == whole


async def test_a_made_up_continue_token_is_a_bad_request(client: ApiClient, namespace: str) -> None:
    with refused(BAD_REQUEST):
        await client.page(CONFIG_MAPS, namespace=namespace, limit=2, continue_token="made-up")


async def test_a_limit_that_is_no_number_is_a_bad_request(client: ApiClient, namespace: str) -> None:
    with refused(BAD_REQUEST):
        await client.request("GET", f"{CONFIG_MAPS.path(namespace)}?limit=many")
