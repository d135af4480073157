"""Neutron itself in this process: the real ML2 plugin and the real interface, configured by a file as operators do."""

import json
import logging
import tempfile
import warnings
from pathlib import Path
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what Neutron imports is deprecated in places
    import webob  # type: ignore[import-untyped]
    from neutron import policy
    from neutron.api.v2 import router
    from neutron.common import config
    from neutron.db.migration.models import head  # noqa: F401  # every table of Neutron's
    from neutron.plugins.ml2 import plugin as ml2_plugin  # noqa: F401  # loaded by name, and slowly
    from neutron_lib import context
    from neutron_lib import exceptions as n_exc
    from neutron_lib.api import attributes
    from neutron_lib.db import api as db_api
    from neutron_lib.db import model_base
    from neutron_lib.plugins import directory
    from sqlalchemy import orm

    import tenure.integrations.neutron.database.tables  # noqa: F401  # and ours

from tests.integrations.neutron.stage.settings import PROJECT, ROLES, Answer, Settings, port_of

orm.configure_mappers()  # here, where all servers that are forked from this process have it for nothing


class Neutron:
    """A server, from its configuration to its answers."""

    def __init__(self, settings: Settings, place: Path) -> None:
        logging.getLogger("tenure").setLevel(logging.INFO)
        folder = Path(tempfile.mkdtemp(dir=place))
        file = folder / "neutron.conf"
        paths = {"oslo_concurrency": {"lock_path": str(folder)}}
        file.write_text(_written({**settings.sections(), **paths}), "utf-8")
        config.register_common_config_options()
        config.init(["--config-file", str(file)])
        if settings.makes_tables:
            model_base.BASEV2.metadata.create_all(db_api.CONTEXT_WRITER.get_engine())
        policy.init(suppress_deprecation_warnings=True)
        self._interface = router.APIRouter()
        self.plugin: Any = directory.get_plugin()

    def request(self, method: str, path: str, body: Any = None) -> Answer:
        """Ask as a client does, as an administrator."""
        who = context.Context("user", PROJECT, is_admin=True, roles=ROLES)
        request = webob.Request.blank(f"/{path}.json", method=method, environ={"neutron.context": who})
        if body is not None:
            request.body = json.dumps(body).encode()
            request.content_type = "application/json"
        response = request.get_response(self._interface)
        return Answer(response.status_int, response.json_body if response.body else None)

    def create_port(self, network: str) -> Answer:
        """Make a port through the plugin alone, which costs half of what the interface costs."""
        who = context.Context("user", PROJECT, is_admin=True, roles=ROLES)
        described = attributes.AttributeInfo(attributes.RESOURCES["ports"])
        port = port_of(network, project_id=PROJECT)
        described.fill_post_defaults(port)
        described.convert_values(port)
        try:
            return Answer(201, {"port": self.plugin.create_port(who, {"port": port})})
        except n_exc.IpAddressGenerationFailure as error:
            return Answer(409, {"error": str(error)})

    def delete_port(self, port: str) -> Answer:
        """Delete a port through the plugin alone."""
        who = context.Context("user", PROJECT, is_admin=True, roles=ROLES)
        self.plugin.delete_port(who, port)
        return Answer(204, None)


def _written(sections: dict[str, dict[str, str]]) -> str:
    lines = []
    for name, options in sections.items():
        lines += [f"[{name}]", *(f"{option} = {value}" for option, value in options.items())]
    return "\n".join(lines) + "\n"
