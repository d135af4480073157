"""The rules of templates: what they may say, which addresses a machine needs by them, and what is rendered.

Nothing here knows a cluster, a file or a clock: a template, facts of a machine and its addresses come in as values,
and documents go out. Read ``template_model`` first.
"""
