"""What the state of a VM pool says, and what may be changed in it: pure values and rules, no I/O, clock or chance.

``integrations/vmpool`` and ``doors`` import it; it imports the error tree of the pool and the kernel. Begin with
``pool_state`` (the document), then ``state_rules`` (allocate, deallocate) and ``state_repair`` (what is put right).
"""
