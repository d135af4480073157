"""Small manifests, the site that they are for, and what is read out of them."""

from typing import Any

import pytest
import yaml

from tenure.integrations.bosh.documents.cloud_config import read_cloud_configs
from tenure.integrations.bosh.documents.manifest import read_manifest
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, BoshFault, Rejected
from tenure.integrations.bosh.model.document_model import CloudConfig, GroupNetwork, InstanceGroup, Manifest
from tenure.kernel.addressing.addresses import format_address, parse_address

WORKED = """\
name: shop
update: {canaries: 1, max_in_flight: 2, canary_watch_time: 1000-60000, update_watch_time: 1000-60000}
instance_groups:
- name: db
  instances: 2
  azs: [z1, z2]
  networks:
  - {name: apps, static_ips: [10.44.16.10, 10.44.17.10]}
- name: web
  instances: 3
  azs: [z1, z2, z3]
  networks:
  - {name: apps, default: [dns, gateway, addressable]}
  - {name: public, static_ips: [203.0.113.11-203.0.113.13]}
- name: cell
  instances: 2
  azs: [z1, z2]
  networks:
  - {name: apps, default: [dns, gateway], nic_group: 1}
  - {name: pods6, nic_group: 1}
"""
"""The worked example of the specification."""

SITE = """\
azs: [{name: z1}, {name: z2}, {name: z3}]
networks:
- name: lab
  subnets:
  - {range: 172.20.5.0/28, gateway: 172.20.5.1, static: [172.20.5.10-172.20.5.12, 172.20.5.14]}
- name: zoned
  subnets:
  - {range: 172.20.6.0/28, gateway: 172.20.6.1, az: z1, static: [172.20.6.8-172.20.6.11]}
  - {range: 172.20.7.0/28, gateway: 172.20.7.1, az: z2, static: [172.20.7.8-172.20.7.11]}
- name: wide
  subnets:
  - {range: 10.8.0.0/15, gateway: 10.8.0.1, static: [10.9.0.0-10.9.255.254]}
- name: blocks
  subnets:
  - {range: 10.10.0.0/24, gateway: 10.10.0.1, prefix: 28, static: [10.10.0.64/26]}
- name: cloudy
  type: dynamic
- name: cloudy-zoned
  type: dynamic
  subnets: [{az: z1}]
- name: public
  type: vip
- name: pubpool
  type: vip
  subnets: [{static: [198.51.100.20-198.51.100.23]}]
"""

Told = tuple[BoshErrorKind, str, str]
"""A fault: its kind, its message, and the way to it in the document."""


def site(text: str = SITE) -> CloudConfig:
    """Read the cloud config that manifests are read against."""
    return read_cloud_configs([("cloud.yml", text)])[0]


def manifest(*groups: dict[str, Any], **besides: Any) -> str:
    """Write a manifest with these groups."""
    return yaml.safe_dump({"name": "alpha", "instance_groups": list(groups), **besides}, sort_keys=False)


def group(*networks: dict[str, Any], **besides: Any) -> dict[str, Any]:
    """Write the group ``app`` of one instance, on ``lab`` unless it is told otherwise."""
    return {"name": "app", "instances": 1, "networks": list(networks) or [{"name": "lab"}], **besides}


def read(text: str, config: CloudConfig | None = None) -> Manifest:
    """Read a manifest that nothing is wrong with, against the site unless there is another."""
    return read_manifest("alpha.yml", text, config or site())


def read_group(described: dict[str, Any]) -> InstanceGroup:
    """Read one group."""
    [found] = read(manifest(described)).groups
    return found


def read_network(**said: Any) -> GroupNetwork:
    """Read one network of ``app``, with as many instances as static IPs."""
    instances = len(said.get("static_ips", ())) or 1
    [found] = read_group(group(said, instances=instances)).networks
    return found


def addresses(network: GroupNetwork) -> list[str]:
    """Write the static IPs for people."""
    assert network.static_ips is not None
    return [format_address(position) for position in network.static_ips]


def positions(*texts: str) -> tuple[int, ...]:
    """Turn addresses into positions."""
    return tuple(parse_address(text) for text in texts)


def faults(text: str, config: CloudConfig | None = None) -> tuple[BoshFault, ...]:
    """Return all that is wrong with a manifest, read against the site unless there is another."""
    with pytest.raises(Rejected) as caught:
        read_manifest("alpha.yml", text, config or site())
    return caught.value.faults


def refused(*groups: dict[str, Any], **besides: Any) -> list[Told]:
    """Return all that is wrong with a manifest of these groups."""
    return told(faults(manifest(*groups, **besides)))


def told(found: tuple[BoshFault, ...]) -> list[Told]:
    """Write faults by kind, message and way."""
    return [(fault.kind, fault.message, fault.place.path if fault.place else "") for fault in found]
