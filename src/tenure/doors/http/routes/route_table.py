"""All routes, in the order the document tells them."""

from tenure.doors.rest.endpoints import Endpoint, Section
from tenure.doors.rest.routes import claims, deployment_work, events, holdings, maps, plan, reading, tokens, whole

SECTIONS: list[Section] = [
    plan.spaces,
    plan.networks,
    plan.subnets,
    plan.pools,
    plan.reserved,
    plan.preallocations,
    holdings.holdings,
    holdings.owners,
    claims.claims,
    maps.maps,
    reading.instances,
    reading.reading,
    reading.log,
    events.events,
    reading.papers,
    deployment_work.deployments,
    whole.whole,
    tokens.tokens,
]

ENDPOINTS: list[Endpoint] = [endpoint for section in SECTIONS for endpoint in section.endpoints]
