"""The links of a template: bonds, ethernets and vlans, in the order in which they are rendered (R9)."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tenure.integrations.kubernetes.metal3_data.template.template_fields import TemplateFields
from tenure.integrations.kubernetes.metal3_data.template.template_model import (
    AnnotationText,
    FixedText,
    HostInterface,
    Link,
    MacSource,
    ObjectSort,
)

MAC = re.compile(r"([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}")
CARD_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9._-]{0,14}")
"""What a machine may call its network card: Linux has 15 characters for it."""
ETHERNET_TYPES = ("bridge", "dvs", "hw_veb", "hyperv", "ovs", "tap", "vhostuser", "vif", "phy")
BOND_MODES = ("balance-rr", "active-backup", "balance-xor", "broadcast", "balance-tlb", "balance-alb", "802.3ad")
HASH_POLICIES = ("layer2", "layer3+4", "layer2+3")
USUAL_MTU, HIGHEST_MTU, HIGHEST_VLAN = 1500, 9000, 4096


def read_links(links: TemplateFields | None) -> Iterator[Link]:
    """Yield the links of network data."""
    if links is None:
        return
    for bond in links.maps("bonds"):
        yield Link(_bond_fields(bond), "ethernet_mac_address", _read_mac(bond), bond.path)
    for ethernet in links.maps("ethernets"):
        fields = {"type": ethernet.choice("type", ETHERNET_TYPES), **_usual_fields(ethernet)}
        yield Link(fields, "ethernet_mac_address", _read_mac(ethernet), ethernet.path)
    for vlan in links.maps("vlans"):
        yield Link(_vlan_fields(vlan), "vlan_mac_address", _read_mac(vlan), vlan.path)
    links.finish()


def _usual_fields(link: TemplateFields) -> dict[str, Any]:
    fields = {"id": link.text("id"), "mtu": link.number("mtu", USUAL_MTU, highest=HIGHEST_MTU)}
    name = link.text("name", needed=False)
    if name and not CARD_NAME.fullmatch(name):
        reason = "must be a letter and up to 14 letters, digits, dots, dashes or underscores"
        link.notes.refuse(link.place("name"), f"{reason}, not {name!r:.80}")
    return {**fields, "name": name} if name else fields


def _bond_fields(bond: TemplateFields) -> dict[str, Any]:
    fields = {
        "type": "bond",
        **_usual_fields(bond),
        "bond_mode": bond.choice("bondMode", BOND_MODES),
        "bond_xmit_hash_policy": bond.choice("bondXmitHashPolicy", HASH_POLICIES, needed=False),
        "bond_links": [_link_name(bond, path, each) for path, each in bond.list("bondLinks")],
    }
    for path, name, value in _parameters(bond):
        if f"bond_{name}" in fields:
            bond.notes.refuse(path, f"{name!r:.80} has a field of its own, or is there twice")
        fields[f"bond_{name}"] = value
    return fields


def _vlan_fields(vlan: TemplateFields) -> dict[str, Any]:
    if not vlan.has("vlanID"):
        vlan.notes.refuse(vlan.place("vlanID"), "is missing")
    number = vlan.number("vlanID", highest=HIGHEST_VLAN)
    return {"type": "vlan", **_usual_fields(vlan), "vlan_id": number, "vlan_link": vlan.text("vlanLink")}


def _link_name(bond: TemplateFields, path: str, value: object) -> str:
    if isinstance(value, str) and value:
        return value
    bond.notes.refuse(path, "must be the id of a link")
    return ""


def _parameters(bond: TemplateFields) -> Iterator[tuple[str, str, Any]]:
    """Yield what is passed on as it is: a map in v1beta1, a list of names and values in v1beta2."""
    if isinstance(written := bond.take("parameters"), Mapping):
        for name, value in written.items():
            yield f"{bond.place('parameters')}.{name}", str(name), value
        return
    for item in bond.maps("parameters"):
        yield item.path, item.text("name"), item.take("value")


def _read_mac(link: TemplateFields) -> MacSource | None:
    """Return where the MAC address of a link comes from: a text, else a card of the host, else an annotation."""
    mac = link.map("macAddress")
    if mac is None:
        link.notes.refuse(link.place("macAddress"), "is missing")
        return None
    text, card = mac.text("string", needed=False), mac.text("fromHostInterface", needed=False)
    if text and not MAC.fullmatch(text):
        mac.notes.refuse(mac.place("string"), f"must be a MAC address, not {text!r:.80}")
    noted = _read_annotation(mac.map("fromAnnotation"))
    mac.finish()
    found = FixedText(text) if text else HostInterface(card) if card else noted
    if found is None:
        mac.notes.refuse(mac.path, "one of string, fromHostInterface and fromAnnotation is missing")
    return found


def _read_annotation(annotation: TemplateFields | None) -> AnnotationText | None:
    if annotation is None:
        return None
    sort = annotation.choice("object", list(ObjectSort)) or ObjectSort.MACHINE
    found = AnnotationText(ObjectSort(sort), annotation.text("annotation"))
    annotation.finish()
    return found
