"""Where ledgers are kept: a package for each kind of store, none of which imports another.

Only ``wiring`` and ``testing`` import a store; stores import ``kernel`` and ``ports``. All stores pass the contract
suite in ``tests/contract``. ``serial_grants`` and ``sql_files`` are shared by several stores. Begin with
``sqlite/store``.
"""
