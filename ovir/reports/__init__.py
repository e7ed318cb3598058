"""Reports as HTML: one file that needs no network and no server.

A module such as ``check_page.py`` makes a ``Page`` of the result of a command; ``writing.py`` renders any page with the
templates of this package. Jinja2 and plotly, which the extra ``ovir[html]`` installs, are imported when a page is
written.
"""
