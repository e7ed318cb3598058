"""``python -m ovir`` is the command ``ovir``."""

import sys

from ovir.cli.main import main

sys.exit(main())
