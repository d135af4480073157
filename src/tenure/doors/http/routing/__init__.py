"""From bytes to a route and back: paths, requests, responses, pages, ETags, and what a route is.

Imported by every other part of ``http``; imports none of them. Begin with ``endpoint``, then ``dispatcher``.
"""
