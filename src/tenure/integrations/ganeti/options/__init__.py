"""Options as Ganeti's users write them (``--net``, ``--subnet``, ``--pool``): text in, values or errors out.

Imported by ``instance``, ``networks``, ``files`` and the command line. Begin with ``network_grammar`` and
``nic_grammar``; ``lexer`` splits the text.
"""
