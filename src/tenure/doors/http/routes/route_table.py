"""All routes, in the order the document tells them."""

from tenure.doors.http.routes import (
    change_routes,
    claim_routes,
    event_routes,
    holding_routes,
    instance_routes,
    ledger_routes,
    map_routes,
    network_routes,
    paper_routes,
    pool_routes,
    preallocation_routes,
    read_routes,
    reserved_range_routes,
    space_routes,
    subnet_routes,
    token_routes,
)
from tenure.doors.http.routes.bosh import work_routes
from tenure.doors.http.routing.endpoint import Endpoint, RouteSection

SECTIONS: list[RouteSection] = [
    space_routes.spaces,
    network_routes.networks,
    subnet_routes.subnets,
    pool_routes.pools,
    reserved_range_routes.reserved,
    preallocation_routes.preallocations,
    holding_routes.holdings,
    holding_routes.owners,
    claim_routes.claims,
    map_routes.maps,
    instance_routes.instances,
    read_routes.reading,
    change_routes.log,
    event_routes.events,
    paper_routes.papers,
    # The section of deployment_routes, to which the import of work_routes adds further routes.
    work_routes.deployments,
    ledger_routes.whole,
    token_routes.tokens,
]

ENDPOINTS: list[Endpoint] = [endpoint for section in SECTIONS for endpoint in section.endpoints]
