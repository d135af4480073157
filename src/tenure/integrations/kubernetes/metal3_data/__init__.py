"""From a Metal3DataTemplate to the metadata and network data of each machine, as secrets of a cluster or from files.

``integrations.kubernetes.operator`` and ``doors`` import it. Begin with ``template``: its rules are pure, they read a
template and render it. The controller beside them numbers machines (``template_pass``), makes their claims
(``claim_making``) and writes their secrets (``data_pass``).
"""
