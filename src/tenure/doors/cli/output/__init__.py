"""What commands print: JSON documents, tables, maps, progress; and the files that they write.

Imported by ``commands``, and by the tool that writes the reference. Begin with ``print_answer``.
"""
