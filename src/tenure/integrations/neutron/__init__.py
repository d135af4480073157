"""The IPAM driver that OpenStack Neutron loads under the name ``tenure``.

Neutron finds ``driver``, ``plugin``, ``options`` and ``migration`` by entry points; of Tenure only the command line
imports ``maintenance``. Begin with ``driver``, then ``modes``. ``docs/reference/neutron-driver.md`` has a picture.
"""
