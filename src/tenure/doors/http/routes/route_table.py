"""All routes, in the order the document tells them."""

from tenure.doors.http.routes import (
    claim_routes,
    event_routes,
    holding_routes,
    ledger_routes,
    map_routes,
    plan_routes,
    read_routes,
    token_routes,
)
from tenure.doors.http.routes.bosh import work_routes
from tenure.doors.http.routing.endpoint import Endpoint, RouteSection

SECTIONS: list[RouteSection] = [
    plan_routes.spaces,
    plan_routes.networks,
    plan_routes.subnets,
    plan_routes.pools,
    plan_routes.reserved,
    plan_routes.preallocations,
    holding_routes.holdings,
    holding_routes.owners,
    claim_routes.claims,
    map_routes.maps,
    read_routes.instances,
    read_routes.reading,
    read_routes.log,
    event_routes.events,
    read_routes.papers,
    # The section of deployment_routes, to which the import of work_routes adds further routes.
    work_routes.deployments,
    ledger_routes.whole,
    token_routes.tokens,
]

ENDPOINTS: list[Endpoint] = [endpoint for section in SECTIONS for endpoint in section.endpoints]
