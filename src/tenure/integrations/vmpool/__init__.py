"""Pools of ready VMs whose state is one ConfigMap, as Cloud API Adaptor's BYOM provider keeps it.

It stands on ``integrations/kubernetes/runtime`` and on no other integration; ``doors`` may import it. Begin with
``async_vm_pool`` (what callers use), then ``pool_changes`` (how a change becomes one compare-and-swap); ``state`` has
the rules, which know no server and no clock.
"""
