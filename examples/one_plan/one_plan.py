"""Two orchestrators, one address plan: networks of one space may lie over each other, holders may not."""

import tenure

with tenure.open("memory:") as ledger:
    for network, realm in (("cluster-net", "cluster-a"), ("cloud-net", "cloud-b")):
        ledger.add_network(network, space="site")
        ledger.add_subnet(network, "203.0.113.0/28")
        ledger.add_pool(network, "203.0.113.1-203.0.113.4")
        print(network, "belongs to", realm)

    pod = ledger.allocate("cluster-net", owner="cluster-a:pod/web")
    server = ledger.allocate("cloud-net", owner="cloud-b:instance/db")
    print(pod)
    print(server)
    assert pod.address != server.address

    try:
        ledger.allocate("cloud-net", owner="cloud-b:instance/cache", address=pod.address)
    except tenure.AddressInUse as error:
        print("refused:", error)

    # A reservation made in one network binds the whole space.
    ledger.reserve("cluster-net", "203.0.113.3", reason="printer")
    last = ledger.allocate("cloud-net", owner="cloud-b:instance/cache")
    print(last)
    assert last.address == "203.0.113.4"
    print(ledger.why("203.0.113.3", network="cloud-net"))
