"""The etcd store: a book that survives the loss of a machine."""
