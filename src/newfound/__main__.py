"""`python -m newfound` is the command `newfound`."""

import sys

from newfound.cli import main

sys.exit(main())
