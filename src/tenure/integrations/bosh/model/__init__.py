"""What all parts of the BOSH integration share: the values of documents, BOSH's errors, ranges of pools, retries.

Imported by every other part of ``bosh``; imports none of them. Begin with ``document_model`` and ``bosh_errors``.
"""
