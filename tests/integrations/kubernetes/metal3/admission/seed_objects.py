"""The example objects of the first design, with its own names and spellings."""

import yaml

SEED_OBJECTS = list(
    yaml.safe_load_all("""
apiVersion: ipam.metal3.io/v1alpha1
kind: IPPool
metadata:
  name: pool-1
  namespace: default
  ownerReferences:
  - {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha4, kind: Metal3Cluster, name: cluster-1}
spec:
  clusterName: cluster-1
  pools:
  - {start: 192.168.0.10, end: 192.168.0.15, subnet: 192.168.0.0/24, gateway: 192.168.0.1, prefix: 24}
  - {start: 192.168.1.10, end: 192.168.1.15, subnet: 192.168.1.0/24, gateway: 192.168.1.1, prefix: 24}
  gateway: 192.168.1.1
  prefix: 24
  preAllocations:
    RenderedData-10: 192.168.0.9
    RenderedData-9: 192.168.0.8
  namePrefix: provisioning
status:
  lastUpdated: "2020-04-02T06:36:09Z"
  allocations: {RenderedData-1: 192.168.0.11, RenderedData-10: 192.168.0.9, RenderedData-9: 192.168.0.8}
---
apiVersion: ipam.metal3.io/v1alpha1
kind: IPAddress
metadata:
  name: pool-1-192-168-0-11
  namespace: default
  ownerReferences:
  - {apiVersion: ipam.metal3.io/v1alpha1, kind: IPPool, name: pool-1}
  - {apiVersion: ipam.metal3.io/v1alpha1, kind: IPClaim, name: RenderedData-1}
spec:
  claim: {Name: RenderedData-1}
  Address: 192.168.0.11
  prefix: 24
  gateway: 192.168.0.1
  pool: {Name: pool-1}
status:
  ready: true
---
apiVersion: ipam.metal3.io/v1alpha1
kind: IPClaim
metadata:
  name: RenderedData-1
  namespace: default
  ownerReferences:
  - {apiVersion: metadata.metal3.io/v1alpha1, kind: Data, name: data-1}
spec:
  owner: {name: RenderedData-1}
  pool: {name: pool-1}
status:
  ipAddress: {name: pool-1-192-168-0-11}
  errorMessage: ""
---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha4
kind: Metal3DataTemplate
metadata:
  name: nodepool-1
  namespace: default
  ownerReferences:
  - {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha4, controller: true, kind: Metal3Cluster, name: cluster-1}
spec:
  metaData:
    ipAddressesFromIPPool: [{Name: pool-1, Key: ip-address-1}]
    prefixesFromIPPool: [{Name: pool-1, Key: netmask-1}]
    gatewaysFromIPPool: [{Name: pool-1, Key: gateway-1}]
  networkData:
    networks:
      ipv4:
      - id: Baremetal
        link: vlan1
        ipAddressfromIPPool: pool-1
        routes:
        - network: 0.0.0.0
          prefix: 0
          gateway: {fromIPPool: pool-1}
          services: [{type: dns, address: 8.8.4.4}]
      - id: Provisioning
        link: vlan2
        ipAddressfromIPPool: pool-2
        routes:
        - network: 0.0.0.0
          prefix: 0
          gateway: {string: 192.168.1.1}
          services: [{type: dns, address: 8.8.4.4}]
status:
  indexes: {"0": machine-1}
  dataNames: {machine-1: nodepool-1-0}
  lastUpdated: "2020-04-02T06:36:09Z"
""")
)
