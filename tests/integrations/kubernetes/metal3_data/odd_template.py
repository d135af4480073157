"""A template of odd values that are all allowed: CAPM3's manager and ours must make the same of each."""

from tenure.integrations.kubernetes.metal3_data.template.read_links import BOND_MODES, ETHERNET_TYPES, HASH_POLICIES
from tests.integrations.kubernetes.metal3_data.machine_park import MachinePark
from tests.integrations.kubernetes.metal3_data.worked_example import Document

# Without "=" and "<<": CAPM3 writes them bare, and Python's reader of YAML, which cloud-init has, cannot read them.
TEXTS = (
    "yes", "No", "on", "null", "~", "1e3", "0x1F", "0o17", "0777", "1_000", "+1", "1.5", ".5", ".inf", ".nan", "NaN",
    "52:54:00:12:34:56", "2020-04-02", "é 😀", "x\ny", "\tx", "a: b", "a #b", "- x", "!x", "&a", "*a", "@x",
    "%x", "`", "'", '"', "\\", "{", "[", "|", ">", "?", "---", "\u2028", " x ", "long " * 400,
)  # fmt: skip
KEYS = ("a.b/c", "yes", "1e3", "52:54:00:12:34:56", "é", "k" * 200)
PREFIXES4, PREFIXES6 = (1, 8, 31, 32), (1, 48, 63, 64, 112, 127, 128)
MAC = {"string": "52:54:00:12:34:56"}


def add_odd_pools(park: MachinePark) -> None:
    """Create a pool for each prefix; none of them has a gateway, and one has no prefix."""
    for prefix in PREFIXES4:
        park.pool(f"four-{prefix}", f"10.{prefix}.0.1-10.{prefix}.0.9", prefix=prefix)
    for prefix in PREFIXES6:
        park.pool(f"six-{prefix}", f"fd00:{prefix}::1-fd00:{prefix}::9", prefix=prefix)
    park.pool("none", "10.200.0.1-10.200.0.9")


def odd_spec() -> Document:
    """Return what the template says, in the spelling of v1beta1."""
    meta_data = {
        "strings": [{"key": f"s{number}", "value": text} for number, text in enumerate(TEXTS)]
        + [{"key": key, "value": "x"} for key in KEYS],
        "indexes": [{"key": "down", "offset": -5, "step": -3, "prefix": "é-"}, {"key": "still", "step": 0}],
        "fromLabels": [{"key": "no-label", "object": "machine", "label": "not.there/at-all"}],
        "fromAnnotations": [{"key": "no-note", "object": "baremetalhost", "annotation": "not.there/at-all"}],
    }
    return {"metaData": meta_data, "networkData": {"links": _links(), "networks": _networks()}}


def _links() -> Document:
    """Return every kind of bond and card, vlans upon vlans, and ids that are there twice."""
    modes = [(mode, policy) for mode in BOND_MODES for policy in HASH_POLICIES]
    vlan = {"id": "same", "vlanID": 4096, "mtu": 0, "macAddress": MAC}
    return {
        "bonds": [
            {
                "id": f"b{number}", "bondMode": mode, "bondXmitHashPolicy": policy, "bondLinks": ["e0", "no-such-link"],
                "macAddress": MAC, "parameters": {"yes": "no", "n": 1, "a.b": [None, True, 1.5, {"x": "1e3"}]},
            }
            for number, (mode, policy) in enumerate(modes)
        ],
        "ethernets": [
            {"type": kind, "id": f"e{number}", "macAddress": {"string": "AB-CD-EF-01-02-03"}}
            for number, kind in enumerate(ETHERNET_TYPES)
        ],
        "vlans": [{**vlan, "vlanLink": "e0"}, {**vlan, "vlanLink": "same"}],
    }  # fmt: skip


def _networks() -> Document:
    entry = {"id": "same", "link": "no-such-link"}
    fours, sixes = ([f"four-{prefix}" for prefix in PREFIXES4], [f"six-{prefix}" for prefix in PREFIXES6])
    return {
        "ipv4": [{**entry, "ipAddressFromIPPool": pool} for pool in (*fours, "none")],
        "ipv6": [
            {
                **entry, "ipAddressFromIPPool": f"six-{prefix}",
                "routes": [{"network": "::", "prefix": prefix, "gateway": {"fromIPPool": f"six-{prefix}"}}],
            }
            for prefix in PREFIXES6
        ],
        "ipv6SLAAC": [{**entry, "routes": [{"network": "fd00::", "gateway": {"fromIPPool": sixes[0]}}]}],
    }  # fmt: skip
