# SPDX-License-Identifier: MIT
"""python -m dsec"""

import sys

from ._cli import main

sys.exit(main())
