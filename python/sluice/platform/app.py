"""tf.app.run: parses the flags, then runs the program's `main`."""

import sys

from sluice.platform import flags
from sluice.platform import tf_logging


def run(main=None, argv=None):
    """Ends the process with what `main([program] + other words)` returns."""
    arguments = list(sys.argv if argv is None else argv)
    try:
        rest = flags.FLAGS(arguments, known_only=True)
    except flags.Error as e:
        sys.stderr.write("FATAL Flags parsing error: %s\n" % e)
        sys.stderr.write("Pass --helpshort or --helpfull to see help on "
                         "flags.\n")
        sys.exit(1)
    main = main or sys.modules["__main__"].main
    tf_logging.raise_to_info()
    sys.exit(main(rest))
