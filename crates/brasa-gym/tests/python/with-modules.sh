#!/bin/sh
# The interpreter of the tests, which also finds the modules of this folder.
PYTHONPATH="$(dirname "$0")" exec "${BRASA_PYTHON:-python3}" "$@"
