"""A network written for the programs that serve it: hosts files, dnsmasq, Kea, PTR zones."""
