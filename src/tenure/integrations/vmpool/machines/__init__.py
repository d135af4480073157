"""What is done to the VMs of a pool themselves: reboot them, send them files, see whether they answer.

It knows allocations and no ConfigMap. ``integrations/vmpool`` and ``doors`` import it. Begin with ``vm_cleanup``.
"""
