"""The adapter for Google's Model Explorer, which draws graphs in nested groups.

``model-explorer --extensions=ovir.view model.xml`` imports ``main.py``, which has the adapter.
``ovir view`` serves the page of Model Explorer itself, on this machine only. Neither imports the other's packages.
"""
