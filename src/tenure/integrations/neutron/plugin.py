"""A service plugin that looks, before a server starts, whether it agrees with the others of its deployment."""

from typing import ClassVar

from neutron_lib.services import base as service_base

from tenure.integrations.neutron.installation import check_at_start


class TenurePlugin(service_base.ServicePluginBase):  # type: ignore[misc]  # Neutron's library has no types
    """What ``service_plugins = tenure`` loads; it adds nothing to the interface of the server."""

    supported_extension_aliases: ClassVar[list[str]] = []

    def __init__(self) -> None:
        super().__init__()
        check_at_start()

    def get_plugin_type(self) -> str:
        """Name the service."""
        return "TENURE"

    def get_plugin_description(self) -> str:
        """Say what the plugin is for."""
        return "Refuses to start a server that keeps addresses elsewhere than the others of its deployment do."
