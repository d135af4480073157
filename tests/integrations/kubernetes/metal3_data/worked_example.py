"""The worked example of the published rules (section 2.2), and the template of the design, as it was printed."""

import json
from typing import Any

import yaml

from tenure.integrations.kubernetes.metal3_data.template.machine_facts import MachineFacts, MachineObject, PoolAddress
from tenure.integrations.kubernetes.metal3_data.template.needed_addresses import NeededAddresses
from tenure.integrations.kubernetes.metal3_data.template.read_template import read_template
from tenure.integrations.kubernetes.metal3_data.template.render_data import RenderedData, RenderRules, render_data
from tenure.integrations.kubernetes.metal3_data.template.template_model import ObjectSort

Document = dict[str, Any]

POOLS = """
apiVersion: ipam.metal3.io/v1alpha1
kind: IPPool
metadata: {name: bm-v4, namespace: metal}
spec:
  namePrefix: dc7-bm4
  prefix: 22
  gateway: 10.40.8.1
  dnsServers: [10.40.0.53, 10.41.0.53]
  pools: [{start: 10.40.8.20, end: 10.40.8.29}]
---
apiVersion: ipam.metal3.io/v1alpha1
kind: IPPool
metadata: {name: bm-v6, namespace: metal}
spec:
  namePrefix: dc7-bm6
  prefix: 64
  gateway: "fd20:7:8::1"
  dnsServers: ["fd20:7::53"]
  pools: [{start: "fd20:7:8::100", end: "fd20:7:8::1ff"}]
"""

TEMPLATE = """
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: Metal3DataTemplate
metadata: {name: blue-md-0, namespace: metal}
spec:
  clusterName: blue
  metaData:
    objectNames: [{key: hostname, object: baremetalhost}]
    indexes: [{key: idx, prefix: n, offset: 100, step: 2}]
    ipAddressesFromIPPool:
    - {key: ip4, name: bm-v4, apiGroup: ipam.metal3.io, kind: IPPool}
    - {key: ip6, name: bm-v6, apiGroup: ipam.metal3.io, kind: IPPool}
    prefixesFromIPPool: [{key: plen4, name: bm-v4, apiGroup: ipam.metal3.io, kind: IPPool}]
    gatewaysFromIPPool: [{key: gw4, name: bm-v4, apiGroup: ipam.metal3.io, kind: IPPool}]
    dnsServersFromIPPool: [{key: dns4, name: bm-v4, apiGroup: ipam.metal3.io, kind: IPPool}]
  networkData:
    links:
      ethernets: [{type: phy, id: eno1, mtu: 9000, macAddress: {string: "0c:42:a1:5e:10:02"}}]
      vlans: [{id: vlan810, mtu: 1500, vlanID: 810, vlanLink: eno1, macAddress: {string: "0c:42:a1:5e:10:02"}}]
    networks:
      ipv4:
      - id: machine4
        link: vlan810
        ipAddressFromIPPool: bm-v4
        routes:
        - {network: 0.0.0.0, prefix: 0, gateway: {fromIPPool: bm-v4}, services: {dnsFromIPPool: bm-v4}}
      ipv6:
      - id: machine6
        link: vlan810
        ipAddressFromIPPool: bm-v6
        routes: [{network: "::", prefix: 0, gateway: {fromIPPool: bm-v6}}]
    services: {dns: ["10.40.0.99"], dnsFromIPPool: bm-v6}
"""

META_DATA = {
    "gw4": "10.40.8.1",
    "hostname": "rack3-u12",
    "idx": "n106",
    "ip4": "10.40.8.20",
    "ip6": "fd20:7:8::100",
    "plen4": "22",
    "providerid": "metal/rack3-u12/blue-md-0-x7k2p",
}
NETWORK_DATA: Document = json.loads("""
{"links":[
  {"ethernet_mac_address":"0c:42:a1:5e:10:02","id":"eno1","mtu":9000,"type":"phy"},
  {"id":"vlan810","mtu":1500,"type":"vlan","vlan_id":810,"vlan_link":"eno1","vlan_mac_address":"0c:42:a1:5e:10:02"}],
 "networks":[
  {"id":"machine4","ip_address":"10.40.8.20","link":"vlan810","netmask":"255.255.252.0","type":"ipv4",
   "routes":[{"gateway":"10.40.8.1","netmask":"0.0.0.0","network":"0.0.0.0",
              "services":[{"address":"10.40.0.53","type":"dns"},{"address":"10.41.0.53","type":"dns"}]}]},
  {"id":"machine6","ip_address":"fd20:7:8::100","link":"vlan810","netmask":"ffff:ffff:ffff:ffff::","type":"ipv6",
   "routes":[{"gateway":"fd20:7:8::1","netmask":"::","network":"::","services":[]}]}],
 "services":[{"address":"10.40.0.99","type":"dns"},{"address":"fd20:7::53","type":"dns"}]}
""")

SEED_TEMPLATE = """
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha4
kind: Metal3DataTemplate
metadata:
  name: nodepool-1
  namespace: default
  ownerReferences:
  - apiVersion: infrastructure.cluster.x-k8s.io/v1alpha4
    controller: true
    kind: Metal3Cluster
    name: cluster-1
spec:
  metaData:
    ipAddressesFromIPPool:
      - Name: pool-1
        Key: "ip-address-1"
    prefixesFromIPPool:
      - Name: pool-1
        Key: "netmask-1"
    gatewaysFromIPPool:
      - Name: pool-1
        Key: "gateway-1"
  networkData:
    networks:
      ipv4:
        - id: "Baremetal"
          link: "vlan1"
          ipAddressfromIPPool: pool-1
          routes:
            - network: "0.0.0.0"
              prefix: 0
              gateway:
                fromIPPool: pool-1
              services:
                - type: "dns"
                  address: "8.8.4.4"
        - id: "Provisioning"
          link: "vlan2"
          ipAddressfromIPPool: pool-2
          routes:
            - network: "0.0.0.0"
              prefix: 0
              gateway:
                string: "192.168.1.1"
              services:
                - type: "dns"
                  address: "8.8.4.4"
status:
  indexes:
    "0": "machine-1"
  dataNames:
    "machine-1": nodepool-1-0
  lastUpdated: "2020-04-02T06:36:09Z"
"""


def seed_template_today() -> str:
    """Return the design's template as it is written today (rows 9 and 16 of the comparison of both)."""
    services = """services:
                - type: "dns"
                  address: "8.8.4.4\""""
    words = {
        "v1alpha4": "v1beta1", "Name:": "name:", "Key:": "key:", "ipAddressfromIPPool": "ipAddressFromIPPool",
        services: 'services: {dns: ["8.8.4.4"]}', "spec:\n": "spec:\n  clusterName: blue\n",
        "      - name: pool-1\n": "      - name: pool-1\n        apiGroup: ipam.metal3.io\n        kind: IPPool\n",
    }  # fmt: skip
    text = SEED_TEMPLATE.partition("status:")[0]
    for old, new in words.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


SEED_ADDRESSES = {
    "pool-1": PoolAddress("192.168.0.11", 24, "192.168.0.1"),
    "pool-2": PoolAddress("192.168.1.11", 24, "192.168.1.1"),
}
SEED_META_DATA = {
    "ip-address-1": "192.168.0.11",
    "netmask-1": "24",
    "gateway-1": "192.168.0.1",
    "providerid": "default/host-1/machine-1",
}
SEED_NETWORK_DATA: Document = {
    "links": [],
    "networks": [
        {
            "type": "ipv4",
            "id": name,
            "link": link,
            "ip_address": f"192.168.{third}.11",
            "netmask": "255.255.255.0",
            "routes": [
                {
                    "network": "0.0.0.0",  # noqa: S104 - the route to everywhere
                    "netmask": "0.0.0.0",  # noqa: S104
                    "gateway": f"192.168.{third}.1",
                    "services": [{"type": "dns", "address": "8.8.4.4"}],
                }
            ],
        }
        for name, link, third in (("Baremetal", "vlan1", 0), ("Provisioning", "vlan2", 1))
    ],
    "services": [],
}


def facts(**changes: Any) -> MachineFacts:
    """Return the machine of the worked example."""
    named = {
        ObjectSort.MACHINE: MachineObject("blue-md-0-x7k2p-capi", {"rack": "3"}, {"pool": "bm-v4"}),
        ObjectSort.METAL3_MACHINE: MachineObject("blue-md-0-x7k2p", {"zone": "b"}, {"note": "m3"}),
        ObjectSort.HOST: MachineObject("rack3-u12", {"serial": "s1"}, {"mac": "0c:42:a1:5e:10:09", "pool": "bm-v6"}),
    }
    words: dict[str, Any] = {"namespace": "metal", "index": 3, "objects": named}
    words["interfaces"] = {"eno1": "0c:42:a1:5e:10:02"}
    return MachineFacts(**words | changes)


ADDRESSES = {
    "bm-v4": PoolAddress("10.40.8.20", 22, "10.40.8.1", ("10.40.0.53", "10.41.0.53")),
    "bm-v6": PoolAddress("fd20:7:8::100", 64, "fd20:7:8::1", ("fd20:7::53",)),
}


def document(text: str = TEMPLATE) -> Document:
    """Return a template as a document of its own, to be changed."""
    loaded: Document = yaml.safe_load(text)
    return loaded


def template_with(**spec: Any) -> Document:
    """Return a template with such a spec."""
    return {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "Metal3DataTemplate",
        "metadata": {"name": "blue-md-0", "namespace": "metal"},
        "spec": {"clusterName": "blue", **spec},
    }


def rendered(
    written: Document,
    machine: MachineFacts | None = None,
    addresses: dict[str, PoolAddress] | None = None,
    rules: RenderRules | None = None,
) -> RenderedData:
    """Render a template as it is written; addresses go by the end of their claim's name."""
    template = read_template(written).template
    machine = machine or facts()
    known = ADDRESSES if addresses is None else addresses
    given = {each: known[each.suffix] for each in NeededAddresses(template, machine) if each.suffix in known}
    return render_data(template, machine, given, rules)
