"""A network written for the programs that serve it: hosts files, dnsmasq, Kea, PTR zones.

Imported by ``doors`` only. Begin with the module of the format; ``host_names`` gives each holding its name.
"""
