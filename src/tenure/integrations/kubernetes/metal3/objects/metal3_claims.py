"""Metal3's claims and addresses: IPClaim and IPAddress of ``ipam.metal3.io``."""

from tenure.integrations.kubernetes.metal3.objects.claim_kind import (
    ClaimId,
    ClaimKind,
    Reference,
    Unserved,
    owner_reference,
)
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    ADDRESS_FINALIZER,
    CLAIM_FINALIZER,
    IP_ADDRESS,
    IP_CLAIM,
    IP_POOL,
    text,
)
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.objects.pool_spec import AddressOptions
from tenure.integrations.kubernetes.runtime.resource_types import Object, key_of


class Metal3Claims(ClaimKind):
    """Claims that have a status of their own: an address, or an error message."""

    claim, address = IP_CLAIM, IP_ADDRESS
    claim_finalizer, address_finalizer = CLAIM_FINALIZER, ADDRESS_FINALIZER
    holder_prefix = ""
    needs_cluster = False

    def reference_of(self, claim: Object) -> Reference | None:
        """Return the pool of ``spec.pool``, which may name its kind and namespace, too; apiVersion does not count."""
        namespace = text(claim, "metadata", "namespace")
        kind, name = text(claim, "spec", "pool", "kind"), text(claim, "spec", "pool", "name")
        if not name or kind not in ("", IP_POOL.kind):
            return None
        named = text(claim, "spec", "pool", "namespace") or namespace
        return Reference(PoolId(named, name), named != namespace)

    def names_no_pool(self, object: Object) -> bool:
        """Return whether ``spec.pool`` has no name, which Metal3's definition allows."""
        return not text(object, "spec", "pool", "name")

    def pool_of(self, address: Object) -> PoolId | None:
        """Return the pool of ``spec.pool``, which may be in another namespace."""
        name, named = text(address, "spec", "pool", "name"), text(address, "spec", "pool", "namespace")
        return PoolId(named or text(address, "metadata", "namespace"), name) if name else None

    def claim_of(self, address: Object) -> str:
        """Return the claim of ``spec.claim``."""
        return text(address, "spec", "claim", "name")

    def address_fields(self, pool: PoolId, claim: ClaimId, address: str, options: AddressOptions) -> Object:
        """Return the fields of a new address; what is not known is left out."""
        carried = {"prefix": options.prefix, "gateway": options.gateway, "dnsServers": list(options.dns_servers)}
        return {
            "address": address,
            "pool": {"name": pool.name, "namespace": pool.namespace},
            "claim": {"name": claim.name, "namespace": claim.namespace},
            **{name: value for name, value in carried.items() if value},
        }

    def given(self, claim: Object) -> str:
        """Return the name in ``status.address``."""
        return text(claim, "status", "address", "name")

    def served(self, claim: Object, address: Object, *, has_room: bool) -> Object | None:
        """Name the address object; its text is under ``tenure``, where the definition is ours."""
        namespace, name = key_of(address)
        shown = text(address, "spec", "address")
        is_named = (self.given(claim), text(claim, "status", "address", "namespace")) == (name, namespace)
        is_shown = not has_room or text(claim, "status", "tenure", "address") == shown
        if is_named and is_shown and not text(claim, "status", "errorMessage"):
            return None
        named = {"name": name, "namespace": namespace}
        # ``tenure`` also where the definition has had no room: the answer shows whether it has by now.
        return {"address": named, "errorMessage": None, "tenure": {"address": shown}}

    def refused(self, claim: Object, message: str, why: Unserved, *, keeps: bool) -> Object | None:
        """Write the message; Metal3 has no field for the reason in one word."""
        loses = not keeps and bool(self.given(claim))
        if text(claim, "status", "errorMessage") == message and not loses:
            return None
        status: Object = {"errorMessage": message, "tenure": None}
        return status if keeps else {**status, "address": None}

    def waiting(self, claim: Object, message: str) -> Object | None:
        """Take off what is not true; what the claim waits for is no error."""
        if not self.given(claim) and not text(claim, "status", "errorMessage"):
            return None
        return {"address": None, "errorMessage": None, "tenure": None}

    def _pool_owner(self, pool: Object) -> Object:
        return owner_reference(IP_POOL, pool)

    def _claim_owner(self, claim: Object) -> Object:
        return owner_reference(IP_CLAIM, claim)
