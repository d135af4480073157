"""Variables that were left in a document, as in ``((internal_cidr))``: refused where they are read, with the remedy."""

import pytest

from tenure.integrations.bosh.documents.cloud_config import read_cloud_configs
from tenure.integrations.bosh.documents.manifest import read_manifest
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Rejected
from tenure.integrations.bosh.running_vms.vm_state import read_vm_state
from tests.integrations.bosh.documents.configs import faults
from tests.integrations.bosh.documents.manifests import site

STOCK = """\
azs:
- {name: z1, cloud_properties: {availability_zone: ((az1_name))}}
networks:
- name: default
  type: manual
  subnets:
  - range: ((internal_cidr))
    gateway: ((internal_gw))
    azs: [z1]
    dns: [8.8.8.8, ((dns))]
    reserved: [((internal_gw))/30]
    static: ((static))
    cloud_properties: {name: ((network_name)), tags: [{a: "x-((tag))"}]}
compilation: {workers: ((workers)), az: z1, network: default, vm_type: ((vm_type))}
vm_types: [{name: ((vm_type)), cloud_properties: {cpu: ((cpu))}}]
"""
"""As the stock cloud configs are, before they are interpolated."""


def places(found: Rejected) -> list[str]:
    assert all(fault.kind is BoshErrorKind.GENERIC for fault in found.faults)
    return [fault.place.path for fault in found.faults if fault.place is not None]


def test_every_variable_that_would_be_read_is_reported_with_its_place_and_nothing_that_follows() -> None:
    with pytest.raises(Rejected) as caught:
        read_cloud_configs([("cloud.yml", STOCK)])

    subnet = "networks[0].subnets[0]"
    assert places(caught.value) == [
        "azs[0].cloud_properties.availability_zone",
        f"{subnet}.range",
        f"{subnet}.gateway",
        f"{subnet}.dns[1]",
        f"{subnet}.reserved[0]",
        f"{subnet}.static",
        f"{subnet}.cloud_properties.name",
        f"{subnet}.cloud_properties.tags[0].a",
        "compilation.workers",
    ]


def test_the_error_names_the_variable_and_the_remedy() -> None:
    [fault] = faults("networks: [{name: lab, subnets: [{range: ((cidr))/((length)), gateway: 172.20.5.1}]}]")

    assert fault.message == (
        "Property 'networks[0].subnets[0].range' has the variables ((cidr)), ((length)) left in it:"
        " interpolate the document first, as `bosh interpolate` does"
    )


@pytest.mark.parametrize("name", ["((name))", "((!name))", "((/director/name))", "((a-b_c.d))", "x((name))", "((a:b))"])
def test_a_variable_is_found_as_bosh_writes_it(name: str) -> None:
    [fault] = faults(f'networks: [{{name: "{name}", type: dynamic}}]')

    assert "left in it" in fault.message


@pytest.mark.parametrize("cpi", ["((", "(x)", "(( ))", "((a b))", "))x(("])
def test_what_only_looks_like_a_variable_is_text(cpi: str) -> None:
    text = f"azs: [{{name: z1, cpi: '{cpi}'}}]\nnetworks: [{{name: n, type: dynamic}}]"
    config, _ = read_cloud_configs([("cloud.yml", text)])

    assert config.azs["z1"].cpi == cpi


def test_a_manifest_is_refused_where_variables_are_left_in_what_is_read() -> None:
    text = """\
name: ((deployment))
update: {vm_strategy: ((strategy))}
instance_groups:
- name: app
  instances: ((count))
  azs: [((az))]
  networks: [{name: ((network)), static_ips: ((ips)), nic_group: ((nic))}]
- name: web
  instances: 1
  azs: ((azs))
  networks: [{name: lab, static_ips: [((ip))], default: [((default))]}]
- name: db
  instances: 1
  networks: ((networks))
"""
    with pytest.raises(Rejected) as caught:
        read_manifest("shop.yml", text, site())

    groups = "instance_groups"
    assert sorted(places(caught.value)) == sorted(
        [
            "name",
            "update.vm_strategy",
            f"{groups}[0].instances",
            f"{groups}[0].azs[0]",
            f"{groups}[0].networks[0].name",
            f"{groups}[0].networks[0].nic_group",
            f"{groups}[1].azs",
            f"{groups}[1].networks[0].default[0]",
            f"{groups}[1].networks[0].static_ips[0]",
            f"{groups}[2].networks",
        ]
    )


def test_variables_may_stay_in_what_has_no_effect_on_addresses() -> None:
    """Directors interpolate properties at the deploy, from a store of secrets that nobody else reads."""
    text = """\
name: shop
variables: [{name: ((prefix))_password, type: password}]
meta: {a: ((a))}
x-own: ((b))
instance_groups:
- name: app
  instances: 1
  env: {bosh: {password: ((password))}}
  properties: {key: ((key)), ((name)): 1}
  jobs: [{name: app, properties: {admin: ((admin))}}]
  networks: [{name: lab}]
"""

    assert read_manifest("shop.yml", text, site()).groups[0].instances == 1


def test_what_vms_say_is_refused_likewise() -> None:
    with pytest.raises(Rejected) as caught:
        read_vm_state("app/0: ((all))\napp/1: {vm: ((vm)), networks: {lab: {ip: ((ip))}, hub: ((hub))}}", "state")

    assert sorted(places(caught.value)) == ["app/0", "app/1.networks.hub", "app/1.networks.lab.ip", "app/1.vm"]
