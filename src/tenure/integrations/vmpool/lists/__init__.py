"""Several named pools that one caller may use: an id gets a VM of the first that has one free (VD7).

``doors`` import it. Begin with ``async_vm_pool_list``; ``named_pools`` reads which pools there are.
"""
