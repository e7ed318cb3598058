"""Untrusted files: the profile of a gate at a download or an upload.

``gate`` looks at paths without opening anything, and has each file checked by a ``guard``: a process that starts one
process for each file, ``child``, with a ``budget`` of time and memory. There, ``check_file`` checks the file: its bytes
(``xml_scan``) with its ``texts``, then everything that ``ovir.check`` checks, then what a run would take
(``ovir/checks/rules/runs.py``).
"""
