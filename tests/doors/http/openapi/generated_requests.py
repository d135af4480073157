"""schemathesis on the OpenAPI document: no 5xx, every answer as documented, what is wrong is refused.

``test_generated_requests`` runs this module in a pytest of its own: schemathesis makes its cases at collection, and
every worker would make all of them, of which it runs a part. ``TENURE_EXAMPLES`` asks for more examples than a check
has time for.
"""

import asyncio
import copy
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import negative_data_rejection

from tenure.doors.http.openapi.openapi_document import document
from tests.doors.http.plan import lay
from tests.doors.http.stage import LOOSE, Server, running
from tests.profiles import EXAMPLES, examples
from tests.scale import PROOF

THOROUGH = PROOF or EXAMPLES > 0
"""Whether every boundary of every field is tried, and not only some requests at random."""
WITHIN_S = 20
NEVER_ENDS = ["follow_changes"]
HOMELY = {
    "path_network": ["net1", "lab", "nowhere"],
    "path_address": ["192.0.2.10", "192.0.2.11", "192.0.2.12", "198.51.100.7", "2001:db8::1"],
    "path_config": ["default", "more"],
    "path_deployment": ["shop", "none"],
    "path_errand": ["smoke-test", "web"],
    "path_ident": ["0", "1", "9"],
    "path_instance": ["web-0", "nobody"],
    "path_instance_group": ["web", "none"],
    "path_kind": ["instance", "nothing"],
    "path_name": ["web-0", "nothing"],
    "path_owner": ["instance/web-0", "instance/db-0", "pod/none"],
    "path_pool": ["pool1", "192.0.2.10-192.0.2.100", "none"],
    "path_range": ["192.0.2.20-192.0.2.50", "192.0.2.30"],
    "path_space": ["net1", "site", "none"],
    "path_subnet": ["subnet1", "192.0.2.0/24", "bench"],
    "path_token": ["ops", "nobody"],
    "path_vm": ["vm-1", "vm-9"],
}
"""What paths say when they are right: names that are there, and some that are not."""

SHAPE = re.compile(r"^[\w.\[\]…]+: (?!.*'int.* got 'float')(expected|object|invalid|no parameter|said twice)")
"""How a refusal begins that is about types and names of fields: what the document tells must never meet one.

But for one: 1.0 is an integer to a JSON schema, and a float to us.
"""


def homely() -> dict[str, Any]:
    """Return the document with names in its paths that are there, and no time to wait."""
    told: dict[str, Any] = copy.deepcopy(json.loads(document()))
    for name, values in HOMELY.items():
        told["components"]["parameters"][name]["schema"] = {"type": "string", "enum": values}
    for body in ("OneWish", "ClaimBody"):
        told["components"]["schemas"][body]["properties"]["wait_s"] = {"type": "number", "enum": [0, 0.01]}
    return told


def configuration(mode: str) -> SchemathesisConfig:
    return SchemathesisConfig.from_dict(
        {
            "phases": {"coverage": {"enabled": mode == "negative" and THOROUGH}},
            "generation": {"mode": mode, "with-security-parameters": False, "allow-extra-parameters": False},
            "checks": {
                "positive_data_acceptance": {
                    "expected-statuses": ["2xx", "304", "401", "404", "409", "410", "412", "422"]
                },
                "negative_data_rejection": {"expected-statuses": [400, 404, 405, 412, 413, 415, 422, 428]},
                "missing_required_header": {"expected-statuses": [404, 422, 428]},
                "ignored_auth": {"enabled": False},  # tests/doors/http/access tries every route without a token
                "unsupported_method": {"enabled": True},
                "use_after_free": {"enabled": False},
            },
        }
    )


good = schemathesis.openapi.from_dict(homely(), config=configuration("positive")).exclude(operation_id=NEVER_ENDS)
bad = schemathesis.openapi.from_dict(json.loads(document()), config=configuration("negative")).exclude(
    operation_id=NEVER_ENDS
)
some, few = (
    settings(max_examples=examples(share), deadline=None, suppress_health_check=list(HealthCheck))
    for share in ((0.1, 0.02) if THOROUGH else (0.03, 0.03))
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with asyncio.Runner() as runner:
        stage = running(limits=LOOSE)
        yield runner.run(stage.__aenter__())
        runner.run(stage.__aexit__(None, None, None))


@pytest.fixture(scope="module")
def session(server: Server) -> Iterator[requests.Session]:
    with requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {server.admin}"
        yield session


async def lay_out(server: Server) -> None:
    async with server.client() as client:
        await lay(client, deployed=True)


@pytest.fixture
def plan(server: Server) -> Server:
    """Lay the plan of the examples afresh."""
    asyncio.run(lay_out(server))
    return server


@pytest.fixture(scope="module")
def lasting_plan(server: Server) -> Server:
    """Lay the plan of the examples once, for requests that change nothing."""
    asyncio.run(lay_out(server))
    return server


@pytest.mark.sampled
@good.parametrize()
@some
def test_what_the_document_allows_is_understood(case: "Case[Any]", plan: Server, session: requests.Session) -> None:
    answer = case.call_and_validate(base_url=plan.url, session=session, timeout=WITHIN_S)

    if answer.status_code == 422:
        assert not SHAPE.match(answer.json()["detail"]), answer.json()


@pytest.mark.sampled
@bad.parametrize()
@few
def test_what_the_document_forbids_is_refused(
    case: "Case[Any]", lasting_plan: Server, session: requests.Session
) -> None:
    answer = case.call(base_url=lasting_plan.url, session=session, timeout=WITHIN_S)
    # Wishes that stand each on its own are refused each on its own.
    told = answer.status_code == 200 and b'"problem":' in answer.content
    case.validate_response(answer, excluded_checks=[negative_data_rejection] if told else [])
