"""Small cloud configs, and what is read out of them."""

from typing import Any

import pytest
import yaml

from tenure.integrations.bosh.documents.cloud_config import read_cloud_configs
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, BoshFault, Rejected
from tenure.integrations.bosh.model.document_model import CloudConfig, CloudNetwork, CloudSubnet
from tenure.kernel.addressing.ranges import AddressRange

LAB = {"range": "172.20.5.0/28", "gateway": "172.20.5.1"}
"""The subnet that the cases speak of."""

WORKED = """\
azs:
- {name: z1, cloud_properties: {rack: r11}}
- {name: z2, cloud_properties: {rack: r22}}
- {name: z3, cloud_properties: {rack: r33}}

networks:
- name: apps
  type: manual
  subnets:
  - range: 10.44.16.0/26
    gateway: 10.44.16.1
    dns: [10.44.0.53]
    azs: [z1]
    reserved: [10.44.16.2-10.44.16.7]
    static: [10.44.16.10-10.44.16.13]
    cloud_properties: {vlan: 416}
  - range: 10.44.17.0/26
    gateway: 10.44.17.1
    dns: [10.44.0.53]
    azs: [z2, z3]
    reserved: [10.44.17.0/29]
    static: [10.44.17.10 - 10.44.17.13]
    cloud_properties: {vlan: 417}
- name: build
  type: manual
  subnets:
  - {range: 10.44.24.0/28, gateway: 10.44.24.1, az: z1, cloud_properties: {vlan: 424}}
- name: edge
  type: dynamic
  subnets:
  - {az: z1, dns: [10.44.0.53], cloud_properties: {pg: edge-a}}
  - {azs: [z2, z3], cloud_properties: {pg: edge-b}}
- name: public            # IPs named in the manifest
  type: vip
- name: pubpool           # IPs named here, picked by the director
  type: vip
  subnets:
  - {azs: [z1, z2], static: [198.51.100.20-198.51.100.23]}
- name: pods6             # prefix delegation
  type: manual
  subnets:
  - range: 2001:db8:44:100::/60
    gateway: 2001:db8:44:100::1
    azs: [z1, z2]
    prefix: 64

compilation: {workers: 3, network: build, az: z1, reuse_compilation_vms: true, vm_type: small}
vm_types: [{name: small}]
"""
"""The worked example of the specification."""


def written(*networks: dict[str, Any], azs: str = "", **besides: Any) -> str:
    """Write a cloud config with these networks, and with AZs given by their names."""
    named = [{"name": name} for name in azs.split()]
    return yaml.safe_dump({"azs": named, "networks": list(networks), **besides}, sort_keys=False)


def lab(*subnets: dict[str, Any], **besides: Any) -> dict[str, Any]:
    """Write the network ``lab``, a manual one unless it is told otherwise."""
    return {"name": "lab", "subnets": list(subnets), **besides}


def on_lab(**said: Any) -> dict[str, Any]:
    """Write the subnet of the cases, with more said about it, or something else."""
    return {**LAB, **said}


def accepted(*texts: str) -> CloudConfig:
    """Read cloud configs that nothing is wrong with, and nothing worth a word."""
    config, warnings = read_cloud_configs(named(*texts))
    assert warnings == []
    return config


def network(described: dict[str, Any], azs: str = "") -> CloudNetwork:
    """Read one network."""
    [found] = accepted(written(described, azs=azs)).networks.values()
    return found


def subnet(described: dict[str, Any] | None = None, azs: str = "") -> CloudSubnet:
    """Read one manual subnet of ``lab``."""
    [found] = network(lab(described or LAB), azs).subnets
    return found


def warned(described: dict[str, Any]) -> tuple[CloudSubnet, list[BoshFault]]:
    """Read one manual subnet of ``lab`` that is worth a word."""
    config, warnings = read_cloud_configs(named(written(lab(described))))
    return config.networks["lab"].subnets[0], warnings


def faults(*texts: str) -> tuple[BoshFault, ...]:
    """Return all that is wrong with cloud configs."""
    with pytest.raises(Rejected) as caught:
        read_cloud_configs(named(*texts))
    return caught.value.faults


def refused(*texts: str) -> list[tuple[BoshErrorKind, str]]:
    """Return all that is wrong, without the places."""
    return [(fault.kind, fault.message) for fault in faults(*texts)]


def refused_subnets(*subnets: dict[str, Any], azs: str = "", **besides: Any) -> list[tuple[BoshErrorKind, str]]:
    """Return all that is wrong with ``lab`` when it has these subnets."""
    return refused(written(lab(*subnets, **besides), azs=azs))


def told(ranges: tuple[AddressRange, ...] | list[AddressRange]) -> list[str]:
    """Write ranges for people."""
    return [str(each) for each in ranges]


def named(*texts: str) -> list[tuple[str, str]]:
    """Name documents as an upload does."""
    return [(f"config{number}.yml", text) for number, text in enumerate(texts)]
