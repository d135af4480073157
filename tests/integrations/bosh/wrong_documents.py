"""Documents that are wrong in one way each, beside what is told of them: message, name and number."""

from typing import Any, NamedTuple

from tests.integrations.bosh.documents.configs import LAB, lab, on_lab, written
from tests.integrations.bosh.documents.manifests import group, manifest


class Wrong(NamedTuple):
    """A document, and what is told of it."""

    told: str
    text: str


def _on(*subnets: dict[str, Any], azs: str = "z1 z2", **besides: Any) -> str:
    return written(lab(*subnets, **besides), azs=azs)


def _with(*networks: dict[str, Any]) -> str:
    return written(lab(LAB), *networks, azs="z1 z2")


def _compiling(network: str = "lab", **said: Any) -> str:
    dynamic = {"name": "edge", "type": "dynamic", "subnets": [{"az": "z1"}]}
    networks = [lab(on_lab(az="z1")), dynamic, {"name": "public", "type": "vip"}]
    return written(*networks, azs="z1 z2", compilation={"workers": 2, "network": network, **said})


_DYNAMIC: dict[str, Any] = {"name": "edge", "type": "dynamic"}
_DYNAMIC_IN_ZONE = {**_DYNAMIC, "subnets": [{"az": "z1"}]}
_MANAGED: dict[str, Any] = {"managed": True}

CONFIGS: list[Wrong] = [
    # The document as such.
    Wrong("The document cannot be read: the key 'azs' is there twice [DirectorError 100]", "azs: []\nazs: []\n"),
    Wrong("Required property 'range' was not specified [DirectorError 100]", _on({"gateway": "172.20.5.1"})),
    Wrong(
        "Property 'networks[0].subnets' must be a list, not text [DirectorError 100]",
        written({"name": "lab", "subnets": "none"}),
    ),
    Wrong(
        "Unknown property 'networks[0].subnet'; known here: name, type, subnets, managed [DirectorError 100]",
        written(lab(LAB, subnet=1)),
    ),
    Wrong("No networks specified [DeploymentNoNetworks 190008]", "azs: [{name: z1}]"),
    Wrong("Duplicate az name 'z1' [DeploymentDuplicateAvailabilityZoneName 190017]", _on(LAB, azs="z1 z1")),
    # Networks.
    Wrong("Invalid network type 'magic' [DeploymentInvalidNetworkType 190010]", _on(LAB, type="magic")),
    Wrong("Invalid network name '++', must have a letter or a digit [DirectorError 100]", _on(LAB, name="++")),
    Wrong(
        "Invalid network name 'LAB', canonical name already taken [DeploymentCanonicalNetworkNameTaken 190007]",
        _with({"name": "LAB", "type": "vip"}),
    ),
    Wrong(
        "Network 'lab' has overlapping subnets [NetworkOverlappingSubnets 160001]",
        _on(LAB, {"range": "172.20.5.0/29", "gateway": "172.20.5.2"}),
    ),
    Wrong(
        "Network 'lab' has subnets that define different prefixes [NetworkPrefixSizesDiffer 160014]",
        _on(LAB, {"range": "172.20.6.0/28", "gateway": "172.20.6.1", "prefix": 30}),
    ),
    Wrong(
        "Subnets on network 'lab' must all either specify availability zone or not [JobInvalidAvailabilityZone 140016]",
        _on(LAB, {"range": "172.20.6.0/28", "gateway": "172.20.6.1", "az": "z1"}),
    ),
    Wrong(
        "subnet names within a managed network must be unique [DirectorError 100]",
        _on({"name": "a"}, {"name": "a"}, **_MANAGED),
    ),
    Wrong(
        "Network 'edge' must not specify 'az'. [NetworkInvalidProperty 160008]",
        _with({**_DYNAMIC, "az": "z1"}),
    ),
    Wrong(
        "Network 'edge' must not specify 'dns' when also specifying 'subnets'. Instead, 'dns' should be specified on "
        "subnet entries. [NetworkInvalidProperty 160008]",
        _with({**_DYNAMIC_IN_ZONE, "dns": ["192.0.2.53"]}),
    ),
    Wrong(
        "Prefix property is not supported for dynamic networks. [NetworkInvalidProperty 160008]",
        _with({**_DYNAMIC, "subnets": [{"prefix": 28}]}),
    ),
    # Subnets.
    Wrong("Invalid IP or CIDR format: 172.20.5.0/33 [DirectorError 100]", _on(on_lab(range="172.20.5.0/33"))),
    Wrong(
        "Invalid network range '172.20.5.1/32', should include at least 2 IPs [NetworkInvalidRange 160002]",
        _on(on_lab(range="172.20.5.1/32")),
    ),
    Wrong(
        "Invalid gateway for network 'lab': must be a single IP [NetworkInvalidGateway 160003]",
        _on(on_lab(gateway="172.20.5.0/30")),
    ),
    Wrong(
        "Invalid gateway for network 'lab': must be inside the range [NetworkInvalidGateway 160003]",
        _on(on_lab(gateway="172.20.6.1")),
    ),
    Wrong(
        "Invalid gateway for network 'lab': can't be the network id [NetworkInvalidGateway 160003]",
        _on(on_lab(gateway="172.20.5.0")),
    ),
    Wrong(
        "Invalid gateway for network 'lab': can't be the broadcast IP [NetworkInvalidGateway 160003]",
        _on(on_lab(gateway="172.20.5.15")),
    ),
    Wrong(
        "Invalid DNS for network 'lab': must be a single IP [NetworkInvalidDns 160004]",
        _on(on_lab(dns=["192.0.2.0/30"])),
    ),
    Wrong(
        "Reserved IP '172.20.5.16/32' is out of network 'lab' range [NetworkReservedIpOutOfRange 160005]",
        _on(on_lab(reserved=["172.20.5.16"])),
    ),
    Wrong(
        "Static IP '172.20.5.16/32' is out of network 'lab' range [NetworkStaticIpOutOfRange 160006]",
        _on(on_lab(static=["172.20.5.14-172.20.5.17"])),
    ),
    Wrong(
        "Static IP '172.20.5.1/32' is in network 'lab' reserved range [NetworkStaticIpOutOfRange 160006]",
        _on(on_lab(static=["172.20.5.1"])),
    ),
    Wrong(
        "Network 'lab' refers to an unknown availability zone 'z9' [NetworkSubnetUnknownAvailabilityZone 160007]",
        _on(on_lab(az="z9")),
    ),
    Wrong(
        "Network 'lab' contains both 'az' and 'azs'. Choose one. [NetworkInvalidProperty 160008]",
        _on(on_lab(az="z1", azs=["z2"])),
    ),
    Wrong("Network 'lab' refers to an empty 'azs' array [NetworkInvalidProperty 160008]", _on(on_lab(azs=[]))),
    Wrong(
        "Network 'lab' must not specify 'static' without specifying 'range'. [NetworkInvalidProperty 160008]",
        _on({"name": "a", "static": ["172.20.5.9"]}, **_MANAGED),
    ),
    Wrong(
        "Network 'lab' must not specify a 'prefix' above '32'. [NetworkInvalidProperty 160008]",
        _on(on_lab(prefix=33)),
    ),
    Wrong(
        "Network 'lab' must not specify 'point_to_point' for more than 2 IPs. [NetworkInvalidProperty 160008]",
        _on(on_lab(point_to_point=True)),
    ),
    Wrong(
        "Invalid IP range format: 172.20.5.9-172.20.5.5 [NetworkInvalidIpRangeFormat 160010]",
        _on(on_lab(reserved=["172.20.5.9-172.20.5.5"])),
    ),
    Wrong(
        "Invalid IP or CIDR format: 172.20.5.x [NetworkInvalidIpRangeFormat 160010]",
        _on(on_lab(static="172.20.5.x")),
    ),
    Wrong(
        "Property 'networks[0].subnets[0].static[0]' must be text: an address, a block, or first - last "
        "[DirectorError 100]",
        _on(on_lab(static=[9])),
    ),
    Wrong(
        "Prefix size '27' is larger than range prefix '28' [NetworkPrefixSizeTooBig 160013]",
        _on(on_lab(prefix=27)),
    ),
    Wrong(
        "Static IP '172.20.5.9/32' of network 'lab' is no base address of prefix '30' "
        "[NetworkPrefixStaticIpNotBaseAddress 160015]",
        _on(on_lab(prefix=30, static=["172.20.5.9"])),
    ),
    # Compilation.
    Wrong(
        "Property 'compilation.workers' must be from 1 to 65536, not 0 [DirectorError 100]",
        _compiling(az="z1", workers=0),
    ),
    Wrong(
        "Compilation config references an unknown network 'dark' [CompilationConfigUnknownNetwork 120001]",
        _compiling("dark", az="z1"),
    ),
    Wrong(
        "Compilation config references vip network 'public', must be a manual or dynamic one [DirectorError 100]",
        _compiling("public", az="z1"),
    ),
    Wrong(
        "Compilation config references unknown az 'z9'. Known azs are: [z1, z2] "
        "[CompilationConfigInvalidAvailabilityZone 120002]",
        _compiling(az="z9"),
    ),
    Wrong(
        "Compilation config refers to az 'z2' but network 'lab' has no matching subnet(s). "
        "[JobNetworkMissingRequiredAvailabilityZone 150006]",
        _compiling(az="z2"),
    ),
    Wrong(
        "Network 'edge' has no matching subnet for availability zone 'z2' "
        "[NetworkSubnetInvalidAvailabilityZone 160009]",
        _compiling("edge", az="z2"),
    ),
]

SECOND_CONFIGS: list[Wrong] = [
    Wrong(
        "Cloud config 'compilation' key cannot be defined in multiple cloud configs. [DirectorError 100]",
        "compilation: {workers: 1, network: build, az: z1}",
    ),
]
"""Wrong only beside another, the worked example."""


def _app(*networks: dict[str, Any], **besides: Any) -> str:
    return manifest(group(*networks, **besides))


_DEFAULT = {"default": ["dns", "gateway"]}
_OLD = {"name": "app", "migrated_from": [{"name": "old"}]}

MANIFESTS: list[Wrong] = [
    # What only the cloud config may say, and old words.
    Wrong(
        "Deployment 'networks' are no longer supported. Network definitions must now be provided in a cloud-config. "
        "[V1DeprecatedNetworks 140026]",
        manifest(group(), networks=[]),
    ),
    Wrong(
        "Deployment manifest contains 'azs' section, but this can only be set in a cloud-config. [DirectorError 100]",
        manifest(group(), azs=[]),
    ),
    Wrong(
        "Jobs are no longer supported, please use instance groups instead [DirectorError 100]",
        manifest(group(), jobs=[]),
    ),
    # Groups.
    Wrong(
        "instance_groups[0].name: 'app ' begins or ends with white space [DirectorError 100]",
        _app(name="app "),
    ),
    Wrong(
        "Invalid name 'a/b', must not have a slash in it [DirectorError 100]",
        _app(name="a/b"),
    ),
    Wrong(
        "Property 'instance_groups[0].instances' must be from 0 to 65536, not -1 [DirectorError 100]",
        _app(instances=-1),
    ),
    Wrong(
        "Invalid instance group name 'App', canonical name already taken [DirectorError 100]",
        manifest(group(), group(name="App")),
    ),
    Wrong(
        "Invalid lifecycle 'daily' for 'app', valid lifecycle profiles are: service, errand [DirectorError 100]",
        _app(lifecycle="daily"),
    ),
    Wrong(
        "Invalid vm_strategy 'magic', valid strategies are: delete-create, create-swap-delete [DirectorError 100]",
        _app(update={"vm_strategy": "magic"}),
    ),
    Wrong(
        "Instance group 'app' references an invalid persistent disk size '-1' [DirectorError 100]",
        _app(persistent_disk=-1),
    ),
    Wrong(
        "Instance group 'app' has empty availability zones [JobMissingAvailabilityZones 140017]",
        _app(azs=[]),
    ),
    Wrong(
        "Instance group 'app' references unknown availability zone 'z9' [JobUnknownAvailabilityZone 140018]",
        _app({"name": "zoned"}, azs=["z1", "z9"]),
    ),
    Wrong(
        "Instance group 'app' has invalid availability zone '1', string expected [JobInvalidAvailabilityZone 140016]",
        _app({"name": "zoned"}, azs=["z1", 1]),
    ),
    Wrong(
        "Instance group 'app' subnets declare availability zones and the instance group does not "
        "[JobInvalidAvailabilityZone 140016]",
        _app({"name": "zoned"}),
    ),
    Wrong(
        "Instance group 'app' must specify availability zone that matches availability zones of network 'zoned' "
        "[JobNetworkMissingRequiredAvailabilityZone 150006]",
        _app({"name": "zoned"}, azs=["z3"]),
    ),
    # Their networks.
    Wrong(
        "Instance group 'app' must specify at least one network [JobMissingNetwork 140009]",
        manifest({"name": "app", "instances": 1}),
    ),
    Wrong(
        "Instance group 'app' references an unknown network 'dark' [JobUnknownNetwork 150001]",
        _app({"name": "dark"}),
    ),
    Wrong(
        "Failed to add dynamic reservation for instance 'app/0' on network 'lab', instance already has static "
        "reservation with IP '172.20.5.10/32' on the same network [NetworkReservationAlreadyExists 130003]",
        _app({"name": "lab", "static_ips": ["172.20.5.10"]}, {"name": "lab"}),
    ),
    Wrong(
        "Instance group 'app' specified an invalid default network property 'ntp', valid properties are: dns, gateway "
        "[JobNetworkInvalidDefault 150003]",
        _app({"name": "lab", "default": ["ntp"]}),
    ),
    Wrong(
        "Instance group 'app' specified more than one network to contain default. 'dns' has default networks: 'lab', "
        "'wide'. [JobNetworkMultipleDefaults 150004]",
        _app({"name": "lab", **_DEFAULT}, {"name": "wide", "default": ["dns"]}),
    ),
    Wrong(
        "Instance group 'app' must specify which network is default for dns, gateway, since it has more than one "
        "network configured [JobNetworkMissingDefault 150005]",
        _app({"name": "lab"}, {"name": "wide"}),
    ),
    Wrong(
        "Can't provide any defaults since this is a VIP network [NetworkReservationVipDefaultProvided 130007]",
        _app({"name": "pubpool"}),
    ),
    Wrong(
        "Instance group 'app' must specify static IPs in vip network 'public', since the network has no pool of its "
        "own [NetworkReservationIpMissing 130005]",
        _app({"name": "lab", **_DEFAULT}, {"name": "public"}),
    ),
    Wrong(
        "IPs cannot be specified in both the instance group and the cloud config "
        "[NetworkReservationVipMisconfigured 130014]",
        _app({"name": "lab", **_DEFAULT}, {"name": "pubpool", "static_ips": ["198.51.100.20"]}),
    ),
    # Static IPs.
    Wrong(
        "Instance group 'app' has 3 instances but was allocated 2 static IPs in network 'lab' "
        "[InstanceGroupNetworkInstanceIpMismatch 150002]",
        _app({"name": "lab", "static_ips": ["172.20.5.10-172.20.5.11"]}, instances=3),
    ),
    Wrong(
        "Instance group 'app' with network 'lab' declares static ip '172.20.5.9/32', which belongs to no subnet "
        "[InstanceGroupNetworkInstanceIpMismatch 150002]",
        _app({"name": "lab", "static_ips": ["172.20.5.9"]}),
    ),
    Wrong(
        "Instance group 'app' specifies static IP '172.20.5.10/32' more than once [JobInvalidStaticIPs 150009]",
        _app({"name": "lab", "static_ips": ["172.20.5.10", "172.20.5.10"]}, instances=2),
    ),
    Wrong(
        "Instance group 'app' using dynamic network 'cloudy' cannot specify static IP(s) "
        "[JobStaticIPNotSupportedOnDynamicNetwork 150008]",
        _app({"name": "cloudy", "static_ips": ["172.20.5.10"]}),
    ),
    Wrong(
        "Instance group 'app' declares static ip '172.20.7.8/32' which does not belong to any of the instance group's "
        "availability zones. [JobStaticIpsFromInvalidAvailabilityZone 150007]",
        _app({"name": "zoned", "static_ips": ["172.20.7.8"]}, azs=["z1"]),
    ),
    Wrong(
        "Static IP '10.10.0.65/32' of network 'blocks' is no base address of prefix '28' "
        "[NetworkPrefixStaticIpNotBaseAddress 160015]",
        _app({"name": "blocks", "static_ips": ["10.10.0.65"]}),
    ),
    Wrong(
        "Instance group 'app' asks for 131072 static IPs in network 'wide', at most 65536 are read [DirectorError 100]",
        _app({"name": "wide", "static_ips": ["10.8.0.0/15"]}),
    ),
    # Groups that become others.
    Wrong(
        "Failed to migrate instance group 'old' to 'app'. A deployment can not migrate an instance group and also "
        "specify it. Please remove instance group 'old'. [DeploymentInvalidMigratedFromJob 190018]",
        manifest(group(**_OLD), group(name="old")),
    ),
    Wrong(
        "Failed to migrate instance group 'old' to 'b'. An instance group may be migrated to only one instance group. "
        "[DeploymentInvalidMigratedFromJob 190018]",
        manifest(group(**_OLD), group(**{**_OLD, "name": "b"})),
    ),
    Wrong(
        "Failed to migrate instance group 'old' to 'app', availability zone 'z2' is not in the list of availability "
        "zones of instance group 'app' [DeploymentInvalidMigratedFromJob 190018]",
        _app({"name": "zoned"}, azs=["z1"], migrated_from=[{"name": "old", "az": "z2"}]),
    ),
]

OWN_MANIFESTS: list[Wrong] = [
    Wrong("No networks specified [DeploymentNoNetworks 190008]", manifest(group())),
    Wrong(
        "Deployment specifies both jobs and instance_groups keys, only one is allowed [DirectorError 100]",
        manifest(group(), networks=[lab(LAB)], jobs=[]),
    ),
]
"""Wrong in the in-memory mode: they bring their own networks."""
