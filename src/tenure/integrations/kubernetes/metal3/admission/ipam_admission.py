"""The webhooks of all kinds that are served: ``/mutate`` fills in and translates, ``/validate`` refuses."""

from collections.abc import Callable
from dataclasses import dataclass

from tenure.integrations.kubernetes.metal3.admission.address_admission import judge_address, judge_cluster_api_address
from tenure.integrations.kubernetes.metal3.admission.admission_view import AdmissionView, Defaults, Judgement, is_judged
from tenure.integrations.kubernetes.metal3.admission.claim_admission import (
    default_claim,
    judge_claim,
    judge_cluster_api_claim,
)
from tenure.integrations.kubernetes.metal3.admission.in_cluster_admission import (
    default_in_cluster_pool,
    judge_in_cluster_deletion,
    judge_in_cluster_pool,
)
from tenure.integrations.kubernetes.metal3.admission.invalid_object import refusal
from tenure.integrations.kubernetes.metal3.admission.pool_admission import default_pool, judge_pool
from tenure.integrations.kubernetes.metal3.admission.seed_spellings import respell
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    CLUSTER_API_ADDRESS,
    CLUSTER_API_CLAIM,
    IP_ADDRESS,
    IP_CLAIM,
    IP_POOL,
    text,
)
from tenure.integrations.kubernetes.metal3.objects.pool_kinds import IN_CLUSTER_POOLS
from tenure.integrations.kubernetes.runtime.resource_types import ResourceType
from tenure.integrations.kubernetes.runtime.webhooks.webhook_host import Admission, AdmissionRequest, Decision

DELETE = "DELETE"
NOT_READY = Decision(
    ["the operator is still reading the cluster; try again in a few seconds"], code=503, reason="ServiceUnavailable"
)


@dataclass(frozen=True)
class AdmissionRules:
    """What is done for one kind."""

    type: ResourceType
    judge: Callable[[AdmissionRequest, AdmissionView], Judgement]
    default: Callable[[AdmissionRequest, AdmissionView], Defaults] | None = None
    judge_deletion: Callable[[AdmissionRequest, AdmissionView], Judgement] | None = None
    is_ours: bool = True
    """Whether a request waits for a replica that can judge it; objects of other kinds are let pass, as without one."""


RULES = {
    (rules.type.group, rules.type.kind): rules
    for rules in (
        AdmissionRules(IP_POOL, judge_pool, default_pool),
        AdmissionRules(IP_CLAIM, judge_claim, default_claim),
        AdmissionRules(IP_ADDRESS, judge_address),
        AdmissionRules(CLUSTER_API_CLAIM, judge_cluster_api_claim, default_claim, is_ours=False),
        AdmissionRules(CLUSTER_API_ADDRESS, judge_cluster_api_address, is_ours=False),
        *(
            AdmissionRules(each.type, judge_in_cluster_pool, default_in_cluster_pool, judge_in_cluster_deletion)
            for each in IN_CLUSTER_POOLS
        ),
    )
}


@dataclass(frozen=True)
class IpamAdmission:
    """Decides on objects by what the operator knows of the cluster."""

    view: AdmissionView

    @property
    def admissions(self) -> dict[str, Admission]:
        """Return the webhooks by their paths, for a ``WebhookHost``."""
        return {"/mutate": self.mutate, "/validate": self.validate}

    async def mutate(self, request: AdmissionRequest) -> Decision:
        """Fill in what an object leaves out, and write early spellings in today's."""
        rules = _rules_of(request)
        if rules is None:
            return Decision()
        if self._is_too_early(request):
            return _not_ready(rules)
        # Cluster API's IPAddress is called as Metal3's is, and never had these spellings.
        respelling = respell(request.kind if rules.is_ours else "", request.object or {})
        if respelling.faults:
            return refusal(rules.type, _name(request), respelling.faults, respelling.warnings)
        steps, warnings = rules.default(request, self.view) if rules.default else Defaults([], [])
        return Decision(warnings=[*respelling.warnings, *warnings], patch=[*respelling.steps, *steps])

    async def validate(self, request: AdmissionRequest) -> Decision:
        """Refuse what cannot be served, with all errors in one answer, and warn of what is odd."""
        rules = _rules_of(request)
        if rules is None:
            return Decision()
        if self._is_too_early(request):
            return _not_ready(rules)
        judge = rules.judge if request.operation != DELETE else rules.judge_deletion
        if judge is None:
            return Decision()
        faults, warnings, reason = judge(request, self.view)
        if faults:
            return refusal(rules.type, _name(request), faults, warnings)
        if reason:
            return Decision([reason], warnings, code=400, reason="BadRequest")
        return Decision(warnings=warnings)

    def _is_too_early(self, request: AdmissionRequest) -> bool:
        """Return whether the answer could be wrong: caches that are not whole do not know all holders."""
        return not self.view.synced and is_judged(request)


def _not_ready(rules: AdmissionRules) -> Decision:
    """Return the answer of a replica that cannot judge yet: kinds that are not ours are let pass, as without one."""
    return NOT_READY if rules.is_ours else Decision()


def _rules_of(request: AdmissionRequest) -> AdmissionRules | None:
    """Return the rules for a request; nothing, if it is about another kind, or neither stores nor deletes an object."""
    concerned = request.before if request.operation == DELETE else request.object
    return RULES.get((request.group, request.kind)) if isinstance(concerned, dict) else None


def _name(request: AdmissionRequest) -> str:
    metadata = (request.object or {}).get("metadata") or {}
    return request.name or text(metadata, "name") or text(metadata, "generateName")
